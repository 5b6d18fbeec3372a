"""The type of a loss: a pure function of outputs and targets, and what else follows from its choice."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from firststep.conditioning import float64_device, in_float64, linear_gram, output_gram, residuals
from firststep.losses.targets import as_numbers, first_tensor
from firststep.task import AsTarget, Targets, as_labels, map_inputs
from firststep.utils.registry import Registry

Kind = Literal["classes", "tokens", "labels", "regression", "other"]
"""The kind of problem that a loss belongs to. Metrics, checks of targets and tables follow from it."""

ResidualKind = Literal["samples", "outputs"]
"""Meaning of a row of the Jacobian: a sample, with r_i = sqrt(ℓ_i / n), or an entry of the output."""

PerSample = Callable[..., Tensor]


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A loss per sample: ``loss(output, target)`` is a tensor [n].

    The loss of a sample may depend on its own output and target only. Its mean over the samples is the loss
    that inner steps descend. Where conditioning is used it must not be negative, because it is the square of
    a residual.

    Examples:
        >>> fs.squared_error(torch.tensor([[1.0], [3.0]]), torch.tensor([[0.0], [1.0]]))
        tensor([1., 4.])
        >>> fs.squared_error.kind, fs.huber.configure(delta=0.5).name
        ('regression', 'huber(delta=0.5)')
    """

    name: str
    per_sample: PerSample
    kind: Kind = "other"
    mean_of: PerSample | None = None
    """The mean in one call, where torch has one; default the mean of ``per_sample``."""
    residual_vector: PerSample | None = None
    """Residuals per sample [n] where the root of the loss loses precision; default sqrt(ℓ_i / n)."""
    scaled_errors: PerSample | None = None
    """∂ℓ_i/∂z_i / sqrt(ℓ_i) [n, outputs], likewise; default by autograd."""
    squared: bool = False
    """Whether ℓ_i is the squared norm of output minus target, so that residuals per output exist."""
    non_negative: bool = False
    """Whether it is known that the loss is never negative. Otherwise the first task is checked."""
    options: tuple[tuple[str, Any], ...] = ()
    """Settings from :meth:`configure`."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle a registered loss as its name: the same object, and its function has no other."""
        base = self.name.partition("(")[0]
        if base in LOSSES:
            return _registered, (base, dict(self.options))
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return partial(Loss, **fields), ()

    def __call__(self, output: Any, target: Targets) -> Tensor:
        """Return the loss per sample, [n]."""
        losses = self.per_sample(output, target)
        samples = len(first_tensor(target))
        if not isinstance(losses, Tensor) or losses.shape != (samples,):
            found = list(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
            raise ValueError(
                f"loss {self.name}: expected one loss per sample, shape [{samples}], not {found}"
            )
        return losses

    def mean(self, output: Any, target: Targets) -> Tensor:
        """Return the mean loss, a scalar."""
        return self(output, target).mean() if self.mean_of is None else self.mean_of(output, target)

    def configure(self, **options: Any) -> Loss:
        """Return the same loss with other values of its options, such as ``huber.configure(delta=0.5)``."""
        known = [
            name
            for name, parameter in inspect.signature(self.per_sample).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY
        ]
        for option in options:
            if option not in known:
                there_are = ", ".join(known) or "none"
                raise ValueError(f"loss {self.name} has no option {option!r}; its options are: {there_are}")
        shown = ", ".join(f"{name}={_short(value)}" for name, value in options.items())
        return dataclasses.replace(
            self,
            name=f"{self.name}({shown})",
            per_sample=partial(self.per_sample, **options),
            options=(*self.options, *options.items()),
            mean_of=None,  # made for the default options, as are the other two
            residual_vector=None,
            scaled_errors=None,
        )

    @property
    def as_target(self) -> AsTarget:
        """The function that checks and converts targets."""
        return as_labels if self.kind == "classes" else as_numbers

    def labels(self, *targets: Any) -> tuple[Any, ...]:
        """Return the targets if they are classes, which initial classifiers depend on; otherwise nothing."""
        return targets if self.kind == "classes" else ()

    def residual_kind(self, chosen: ResidualKind | None) -> ResidualKind:
        """Return the chosen kind of residuals, or the default: outputs for squared error, else samples."""
        if chosen == "outputs" and not self.squared:
            raise ValueError(
                f"residuals='outputs' is for squared_error, whose residuals are the errors of the outputs; "
                f"loss {self.name} has residuals='samples'"
            )
        return chosen or ("outputs" if self.squared else "samples")

    def residuals(
        self, output: Any, target: Targets, *, kind: ResidualKind | None = None, check_finite: bool = True
    ) -> Tensor:
        """Return the vector r with Σ r² = the mean loss, float64: [n], or [n · outputs] per output."""
        if self.residual_kind(kind) == "outputs":
            self(output, target)  # refuses shapes that do not fit
            errors = in_float64(output) - in_float64(first_tensor(target))
            return errors.flatten() / len(errors) ** 0.5
        if self.residual_vector is not None:
            return self.residual_vector(output, target, check_finite=check_finite)
        return residuals(self(*self.in_float64(output, target)), check_finite=check_finite)

    @staticmethod
    def in_float64(output: Any, target: Targets) -> tuple[Any, Targets]:
        """Return an output in float64, and its target on the same device."""
        exact = map_inputs(lambda part: in_float64(part) if part.is_floating_point() else part, output)
        device = float64_device(first_tensor(target).device)
        return exact, map_inputs(lambda part: part.to(device), target)

    def gram(
        self,
        features: Tensor,
        output: Tensor,
        target: Targets,
        bias: bool = True,
        *,
        kind: ResidualKind | None = None,
        small: bool = True,
    ) -> Tensor:
        """Return the Gram matrix of a linear last layer in closed form, float64.

        Args:
            features: the layer's input, [n, d].
            output: its output, [n, outputs].
            target: as the loss takes it.
            bias: whether the layer's bias is among the constrained parameters.
            kind: what the residuals belong to.
            small: whether the smaller of J Jᵀ and JᵀJ is returned; otherwise J Jᵀ.
        """
        if self.residual_kind(kind) == "outputs":
            self(output, target)  # refuses shapes that do not fit
            return output_gram(features, output[0].numel(), bias, small=small)
        errors = (self.scaled_errors or self._scaled_errors)(output, target)
        return linear_gram(features, errors, bias, small=small)

    def _scaled_errors(self, output: Tensor, target: Targets) -> Tensor:
        """e_i / sqrt(ℓ_i) by autograd, 0 where the loss is 0: a sample's loss depends on its output alone."""
        with torch.enable_grad():
            z, target = self.in_float64(output if output.requires_grad else output.detach(), target)
            z = z if output.requires_grad else z.requires_grad_()
            losses = self(z, target)
            (errors,) = torch.autograd.grad(
                losses.sum(), z, create_graph=output.requires_grad, materialize_grads=True
            )
        losses = losses if output.requires_grad else losses.detach()
        zero = losses <= 0
        roots = losses.masked_fill(zero, 1.0).sqrt().masked_fill(zero, torch.inf)
        return errors.flatten(1) / roots.unsqueeze(-1)


LOSSES: Registry[Loss] = Registry("loss")
"""The losses by name; :func:`register_loss` adds one.

Examples:
    >>> list(fs.LOSSES)
    ['cross_entropy', 'token_cross_entropy', 'binary_cross_entropy', 'squared_error', 'absolute_error',
     'huber', 'poisson']
"""


def register_loss(*, kind: Kind = "other", **properties: Any) -> Callable[[PerSample], Loss]:
    """Return a decorator that makes a :class:`Loss` of a function and registers it under its name.

    Args:
        kind: kind of problem; metrics and checks of targets follow from it.
        properties: further fields of :class:`Loss`.

    Examples:
        >>> from firststep.losses import LOSSES, register_loss
        >>> @register_loss(kind="regression", non_negative=True)
        ... def log_cosh(output, target):
        ...     return (output - target).cosh().log().flatten(1).sum(1)
        >>> log_cosh(torch.zeros(2, 1), torch.zeros(2, 1))
        tensor([0., 0.])
        >>> LOSSES.unregister("log_cosh")
    """

    def register(per_sample: PerSample) -> Loss:
        name = getattr(per_sample, "__name__", "loss")
        return LOSSES.register(name, Loss(name=name, per_sample=per_sample, kind=kind, **properties))

    return register


def _registered(name: str, options: dict[str, Any]) -> Loss:
    return LOSSES[name].configure(**options) if options else LOSSES[name]


def as_loss(loss: str | Loss | PerSample, what: str = "loss") -> Loss:
    """Return the loss that a name, a :class:`Loss` or a function of output and target stands for."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        return LOSSES[loss]
    if not callable(loss) or isinstance(loss, type):
        raise TypeError(
            f"{what} must be a name such as 'squared_error', or a function (output, target) → losses [n], "
            f"not {loss!r}"
        )
    return Loss(name=str(getattr(loss, "__name__", type(loss).__name__)), per_sample=loss)


def _short(value: object) -> str:
    return f"tensor{list(value.shape)}" if isinstance(value, Tensor) else f"{value}"
