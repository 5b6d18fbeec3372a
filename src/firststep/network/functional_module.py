"""FunctionalModule: a module as a pure function of its parameters.

Functions take and return parameters as a plain dict of tensors. The module itself is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from firststep.network.capture import Captured, capture_into, register_capture
from firststep.network.find_layers import find_classifier, own_path
from firststep.network.first_use import FirstUse
from firststep.network.heads import (
    ONE_ROW,
    check_head,
    check_labels,
    count_classes,
    prototype_rows,
    repeat_row,
    set_rows,
    sum_rows,
)
from firststep.network.interface import as_arguments, output_of
from firststep.network.precision import casting, network_dtype
from firststep.network.randomness import check_randomness, draw_seed, drawing_from, task_seed, with_task_seed
from firststep.network.second_derivatives import twice_differentiable
from firststep.network.subsets import select, tied_names
from firststep.task import Inputs, as_labels, known_bounds, map_inputs

Params = dict[str, Tensor]
"""A network's parameters, or a rule's, by name.

Examples:
    >>> weights: functional.Params = model.params()
    >>> weights["classifier.weight"].shape
    torch.Size([5, 32])
"""


class Output(NamedTuple):
    """The network's output for a batch.

    Examples:
        >>> output = model(model.params(), support_x)
        >>> output.features.shape, output.logits.shape
        (torch.Size([10, 32]), torch.Size([10, 5]))
    """

    features: Tensor | None
    """The last linear layer's input, [n, d]; None if the network does not end in one."""
    logits: Any
    """The network's output: logits [n, classes] of a classifier, or what another loss takes."""


class FunctionalModule:
    """A network as a function of its parameters.

    A network that ends in an ``nn.Linear``, called the classifier, has a closed form of the Gram matrix, and
    heads that start from one row. All else works for any network.

    Args:
        module: any network, used in its current mode (``train()`` or ``eval()``). Buffers are read but never
            changed, so an ``nn.BatchNorm2d`` in training mode normalises by the batch and keeps its running
            statistics. Parameters with ``requires_grad=False`` stay fixed and are not learned.
        classifier: path of the final linear layer, such as ``"fc"`` or ``"encoder.head"``; default the
            ``nn.Linear`` named ``classifier``, ``fc`` or ``head``, or else the ``nn.Linear`` that was
            registered last.
        embedding: path of the last layer before the classifier, for the subset ``emb``; default the path in
            the module's ``embedding`` attribute, or else the last layer with a weight matrix before the
            classifier. The order is that of execution, or of registration until the network has run.
        embedding_norm: path of that layer's normalisation, for ``ebn``; default the path in the module's
            ``embedding_norm`` attribute, or else the first normalisation after the embedding.
        head: the initial classifier of a task: ``per-class``, ``shared``, ``zero`` or ``prototypes``; see
            :mod:`firststep.network.heads`. With the last three the module's classifier is reduced to one row,
            from which, or from class means, :meth:`initial_params` makes the rows of a task.
        randomness: what to do with a network that draws random numbers, such as dropout in training mode.
            ``error`` refuses it. ``same`` draws the same numbers in all evaluations of a task; each task
            draws its own from torch's default generator.

    Examples:
        >>> model = functional.FunctionalModule(network)
        >>> model.classifier, model.subset("cls"), model.subset("emb")
        ('classifier', ('classifier.weight', 'classifier.bias'), ('blocks.3.conv.weight',
         'blocks.3.conv.bias'))
        >>> model(model.params(), support_x).logits.shape
        torch.Size([10, 5])
    """

    def __init__(
        self,
        module: nn.Module,
        classifier: str | None = None,
        *,
        embedding: str | None = None,
        embedding_norm: str | None = None,
        head: str = "per-class",
        randomness: str = "error",
    ) -> None:
        check_head(head)
        check_randomness(randomness)
        if not isinstance(module, nn.Module):
            raise TypeError(f"the network must be an nn.Module, not {type(module).__name__}")
        modules = dict(module.named_modules())
        _check_usable(module, modules)
        for option, path in (("embedding", embedding), ("embedding_norm", embedding_norm)):
            if path is not None and path not in modules:
                raise ValueError(
                    f"{option}={path!r} is no module of {type(module).__name__}; it has {list(modules)[1:]}"
                )
        self.module = module
        self.last_linear = find_classifier(module, modules, classifier)
        """Path of the last linear layer; None if there is none."""
        self._must_end_in_linear = classifier is not None or head != "per-class"
        self.head = head
        self._classifier: nn.Linear | None = None
        self._rows: list[str] = []
        if self.last_linear is not None:
            linear = modules[self.last_linear]
            assert isinstance(linear, nn.Linear)
            self._classifier = linear
            prefix = f"{self.last_linear}." if self.last_linear else ""
            self._rows = [prefix + name for name, _ in linear.named_parameters(recurse=False)]
            self._classes = linear.out_features
            register_capture(self._classifier)
        if head != "per-class":
            set_rows(self._linear(), 1, zero=head != "shared")
        if head == "prototypes" and (randomness != "error" or len(self._rows) < 2):
            raise ValueError(
                "head='prototypes' needs randomness='error', and a classifier with a bias: class means are "
                "its weight and bias"
            )
        self.randomness = randomness
        self._first_use = FirstUse(
            module,
            self.last_linear,
            embedding or own_path(module, "embedding"),
            embedding_norm or own_path(module, "embedding_norm"),
            allow_random=randomness == "same",
        )
        self._tied = tied_names(module)
        self._buffers = [
            (f"{path}.{name}" if path else name, owner, name)
            for path, owner in modules.items()
            for name, _ in owner.named_buffers(recurse=False)
        ]

    @property
    def classifier(self) -> str:
        """Path of the classifier; an error if the network has no linear layer."""
        self._linear()
        assert self.last_linear is not None
        return self.last_linear

    @property
    def num_classes(self) -> int:
        """Number of classes of the classifier as built; shared and zero heads take any number."""
        self._linear()
        return self._classes

    def _linear(self) -> nn.Linear:
        if self._classifier is None:
            raise ValueError(
                f"{type(self.module).__name__} has no nn.Linear that could be its classifier, which heads, "
                "class counts and the subset 'cls' need"
            )
        return self._classifier

    def params(self) -> Params:
        """Return the module's trainable parameters by name: the parameters themselves, not copies.

        With ``head="zero"`` and ``"prototypes"`` they include the classifier's row, which is not learned,
        because the inner loop moves the rows that it stands for.
        """
        fixed_start = self._rows if self.head in ("zero", "prototypes") else ()
        return {
            name: value
            for name, value in self.module.named_parameters()
            if value.requires_grad or name in fixed_start
        }

    def initial_params(
        self, params: Mapping[str, Tensor], *labels: Tensor, support: Inputs | None = None
    ) -> Params:
        """Return θ(0) of a task with these labels; rows of the classifier are made per class.

        Args:
            params: the initial parameters.
            labels: those of the support set, and of further sets.
            support: inputs of the support set, which ``head="prototypes"`` needs.
        """
        checked = [as_labels(part) for part in labels]
        if self.head == "per-class":
            self.check_labels(params, *checked)
            return dict(params)
        if not checked:
            raise ValueError(f"head={self.head!r} needs targets that are classes: use head='per-class'")
        ways = count_classes(*checked)
        if self.head in ONE_ROW:
            return repeat_row(params, self._rows, ways)
        if len(params[self._rows[0]]) != 1:  # rows of a task already
            return dict(params)
        if support is None:
            raise ValueError("head='prototypes' needs the support set: initial_params(..., support=inputs)")
        return {**params, **self._prototypes(params, support, checked[0], ways)}

    def _prototypes(
        self, params: Mapping[str, Tensor], support: Inputs, labels: Tensor, ways: int
    ) -> dict[str, Tensor]:
        rows = prototype_rows(self.features(params, support), labels, ways)
        return dict(zip(self._rows, rows, strict=True))

    def check_labels(self, params: Mapping[str, Tensor], *labels: Tensor) -> None:
        """Refuse labels without a classifier row in ``params``.

        Labels on an accelerator are checked if :meth:`firststep.Task.to` has read them on the way: reading
        them there would make the device wait in every task.
        """
        if labels and self._rows and all(map(_readable, labels)):
            rows = params.get(self._rows[0])
            check_labels(self.num_classes if rows is None else len(rows), *labels)

    def initial_gradient(
        self, gradients: Params, start: Mapping[str, Tensor], support: Inputs, *labels: Tensor
    ) -> Params:
        """Return the parameters' gradient from that of θ(0): :meth:`initial_params` transposed.

        Args:
            gradients: by θ(0).
            start: θ(0).
            support: inputs of the support set.
            labels: of the support set.
        """
        if self.head == "per-class":
            return gradients
        if self.head in ONE_ROW:
            return sum_rows(gradients, self._rows)
        ways = len(start[self._rows[0]])
        body = {name: value.detach().requires_grad_() for name, value in start.items()}
        with torch.enable_grad():
            made = self._prototypes(body, support, labels[0], ways)
            through = torch.autograd.grad(
                [made[name] for name in self._rows],
                list(body.values()),
                [gradients[name] for name in self._rows],
                materialize_grads=True,
            )
        total = {name: gradients[name] + grad for name, grad in zip(body, through, strict=True)}
        return total | {name: torch.zeros_like(total[name][:1]) for name in self._rows}

    def keep_classes(self, ways: int) -> None:
        """Reduce the module's own classifier to its first ``ways`` rows."""
        set_rows(self._linear(), ways)
        self._classes = ways

    def check_spectrum(self, subset: str | Iterable[str]) -> None:
        """Refuse a subset whose gradient is 0 before the first step: its spectrum is rounding noise."""
        names = self.subset(subset)
        if self.head in ONE_ROW and self._rows[0] not in names:
            raise ValueError(
                f"with head={self.head!r} all classes start alike, so nothing below the classifier has a "
                f"gradient before the first step, and {subset!r} has no spectrum there: add cls to the subset"
            )

    def __call__(self, params: Mapping[str, Tensor], inputs: Inputs) -> Output:
        """Return the network's features and logits with these parameters; twice differentiable in them.

        Args:
            params: parameters by name; the module's own values stand in for missing ones.
            inputs: a tensor, a tuple (positional arguments) or a dict (keyword arguments) of tensors.
        """
        return self._run(params, inputs, seed=task_seed())

    def features(self, params: Mapping[str, Tensor], inputs: Inputs) -> Tensor:
        """Return the input of the last linear layer, [n, d]; an error if the network does not end in one."""
        found = self(params, inputs).features
        if found is None:
            raise ValueError(
                f"the output of {type(self.module).__name__} is not that of a linear layer, whose input are "
                "the features that are needed here"
            )
        return found

    def pinned(self) -> Callable[[Mapping[str, Tensor], Inputs], Output]:
        """Return the network as a function that always draws the random numbers of the current task."""
        return partial(self._run, seed=task_seed())

    def _run(self, params: Mapping[str, Tensor], inputs: Inputs, *, seed: int | None) -> Output:
        captured: list[Captured] = []
        token = capture_into.set(captured)
        try:
            with twice_differentiable(self._first_use.replaces), self._drawing(seed), casting(self._device):
                result = self._call(params, inputs)
        finally:
            capture_into.reset(token)
        output = output_of(result)
        calls = [call for call in captured if call.module is self._classifier]
        if len(calls) != 1 or calls[0].output is not output or calls[0].input.dim() != 2:
            if self._must_end_in_linear:
                raise ValueError(
                    f"the output of {type(self.module).__name__} must be that of its linear layer "
                    f"{self.classifier!r}, applied once to one feature vector per sample; use classifier=... "
                    "to name another layer"
                )
            return _in_dtype_of(params, Output(features=None, logits=output))
        return _in_dtype_of(params, Output(features=calls[0].input, logits=calls[0].output))

    def _call(self, params: Mapping[str, Tensor], inputs: Inputs) -> object:
        # A module in training mode may update its buffers (running statistics) in place, so pass copies.
        buffers = {
            name: getattr(owner, key).clone()
            for name, owner, key in self._buffers
            if owner.training and getattr(owner, key) is not None
        }
        arguments, keywords = as_arguments(inputs)
        result: object = functional_call(self.module, {**buffers, **params}, arguments, keywords)
        return result

    def _drawing(self, seed: int | None) -> AbstractContextManager[None]:
        if seed is None or self.randomness == "error":
            return nullcontext()
        return drawing_from(seed, self._device)

    @property
    def _device(self) -> torch.device:
        return next(self.module.parameters()).device

    def observe(self, params: Mapping[str, Tensor], inputs: Inputs) -> None:
        """Find the module's layers and refuse randomness, at the first use in the current mode.

        The first call costs one forward pass, later calls nothing.
        """
        self._first_use(lambda: self._call(params, inputs), inputs, self._device)

    def one_task(self, seed: int | None = None) -> AbstractContextManager[None]:
        """Draw the same random numbers in all evaluations inside; those of an outer task, if any."""
        return with_task_seed(self.task_seed() if seed is None else seed)

    def task_seed(self) -> int | None:
        """Return the seed of the current task, or a new one; None if randomness is refused."""
        if self.randomness == "error":
            return None
        seed = task_seed()
        return draw_seed() if seed is None else seed

    def check_params(self, params: Mapping[str, Tensor]) -> None:
        """Refuse a dict without a trainable parameter: the module's own value would be used silently."""
        missing = [name for name in self.params() if name not in params]
        if missing:
            raise ValueError(f"params lacks {', '.join(missing)} of {type(self.module).__name__}")

    def check_deterministic(self) -> None:
        """Refuse dropout in training mode: a step that is computed twice must give the same values."""
        if self.randomness == "error":
            self._first_use.check_dropout()

    def subset(self, spec: str | Iterable[str]) -> tuple[str, ...]:
        """Return the names of a parameter subset.

        Args:
            spec: ``"cls"`` the classifier, ``"emb"`` the last layer before it, ``"ebn"`` that layer's
                normalisation, ``"all"``, ``"body"`` (all but the classifier), a union such as
                ``"cls+emb"``, or a list of name patterns such as ``["blocks.3.*", "*.bias"]``.
        """
        return select(
            spec, list(self.params()), self._first_use.layers, self._tied, type(self.module).__name__
        )

    def closed_form(self) -> tuple[str | None, str | None]:
        """Return the names of the classifier's trainable weight and bias; None for one the body shares.

        Only for these does the Gram matrix have a closed form.
        """
        if self.last_linear is None:
            return None, None
        prefix = f"{self.last_linear}." if self.last_linear else ""
        own = set(self.params()) - {*self._tied.values()}
        weight, bias = f"{prefix}weight", f"{prefix}bias"
        return weight if weight in own else None, bias if bias in own else None


def _in_dtype_of(params: Mapping[str, Tensor], output: Output) -> Output:
    """Return an output that :func:`casting` has rounded in the dtype of the parameters."""
    if network_dtype() is None:
        return output
    dtype = next(iter(params.values())).dtype
    back = partial(map_inputs, lambda part: part.to(dtype) if part.is_floating_point() else part)
    return Output(
        features=None if output.features is None else back(output.features), logits=back(output.logits)
    )


def _readable(labels: Tensor) -> bool:
    return labels.device.type == "cpu" or known_bounds(labels) is not None


def _check_usable(module: nn.Module, modules: Mapping[str, nn.Module]) -> None:
    for path, part in modules.items():
        # Set by torch.compile(module) and module.compile().
        if hasattr(part, "_orig_mod") or getattr(part, "_compiled_call_impl", None) is not None:
            where = f"its part {path!r}" if path else "the network"
            raise ValueError(
                f"{where} is compiled by torch.compile, which cannot differentiate a gradient step: pass the "
                "network itself, and compile=True to MetaLearner, which compiles the whole step"
            )
    if any(value.is_inference() for value in module.parameters()):
        raise ValueError(
            f"{type(module).__name__} was made in torch.inference_mode(), so it cannot be trained: make it "
            "outside"
        )
