"""FunctionalModule: any module that ends in a linear layer, seen as a pure function of its parameters.

Parameters are a plain dict of tensors that functions take and return; the module itself is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from firststep.network.capture import Captured, capture_into, register_capture
from firststep.network.find_layers import find_classifier, own_path
from firststep.network.first_use import FirstUse
from firststep.network.heads import check_head, count_classes, repeat_row, set_rows, sum_rows
from firststep.network.interface import as_arguments, logits_of
from firststep.network.randomness import check_randomness, draw_seed, drawing_from, task_seed, with_task_seed
from firststep.network.second_derivatives import twice_differentiable
from firststep.network.subsets import select, tied_names
from firststep.task import Inputs

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

    features: Tensor
    """The classifier's input, [n, d]."""
    logits: Tensor
    """The classifier's output, [n, classes]."""


class FunctionalModule:
    """Wraps a network whose output is that of an ``nn.Linear``.

    Args:
        module: any network; batch norm, layer norm and buffers are fine. It is used in the mode
            (``train()`` or ``eval()``) it is in. Buffers are read but never changed, so an
            ``nn.BatchNorm2d`` in training mode normalises by the batch and its running statistics stay.
            Parameters with ``requires_grad=False`` stay fixed and are not learned.
        classifier: path of the final linear layer, such as ``"fc"`` or ``"encoder.head"``; default
            ``classifier``, ``fc`` or ``head`` where that is an ``nn.Linear``, otherwise the ``nn.Linear``
            that was registered last.
        embedding: path of the last layer before it, for the subset ``emb``; default the path in the module's
            own ``embedding`` attribute, or the last layer with a weight matrix before the classifier: in
            order of execution, which is known when the network has been run, until then of registration.
        embedding_norm: path of that layer's normalisation, for ``ebn``; default the path in the module's own
            ``embedding_norm`` attribute, or the first normalisation after the embedding in that order.
        head: how the classifier starts in a task: ``per-class``, ``shared`` or ``zero``, which
            :mod:`firststep.network.heads` explains. For the latter two the module's classifier is cut to the
            one row that all classes start from; :meth:`initial_params` repeats it.
        randomness: for networks that draw random numbers (dropout in training mode): ``error`` refuses them,
            ``same`` draws the same numbers in all evaluations of a task. For another task they are others,
            drawn from torch's default generator.

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
        for option, path in (("embedding", embedding), ("embedding_norm", embedding_norm)):
            if path is not None and path not in modules:
                raise ValueError(
                    f"{option}={path!r} is not a part of {type(module).__name__}: {list(modules)[1:]}"
                )
        self.module = module
        self.classifier = find_classifier(module, modules, classifier)
        linear = modules[self.classifier]
        assert isinstance(linear, nn.Linear)
        self._classifier = linear
        self.head = head
        self.num_classes = linear.out_features
        """Of the classifier as it was built; with one row for all a task may have any number."""
        prefix = f"{self.classifier}." if self.classifier else ""
        self._rows = [prefix + name for name, _ in linear.named_parameters(recurse=False)]
        if head != "per-class":
            set_rows(linear, 1, zero=head == "zero")
        register_capture(self._classifier)
        self.randomness = randomness
        self._first_use = FirstUse(
            module,
            self.classifier,
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

    def params(self) -> Params:
        """The module's trainable parameters by name: the parameters themselves, not copies.

        With ``head="zero"`` the classifier's row is among them: the inner loop moves its copies.
        """
        fixed_start = self._rows if self.head == "zero" else ()
        return {
            name: value
            for name, value in self.module.named_parameters()
            if value.requires_grad or name in fixed_start
        }

    def initial_params(self, params: Mapping[str, Tensor], *labels: Tensor) -> Params:
        """θ(0) of a task with these labels: with one row for all, a copy of it for every class."""
        if self.head == "per-class":
            return dict(params)
        return repeat_row(params, self._rows, count_classes(*labels))

    def initial_gradient(self, gradients: Params) -> Params:
        """From the gradient by θ(0) of a task to that by the parameters: the transpose of the above."""
        return gradients if self.head == "per-class" else sum_rows(gradients, self._rows)

    def keep_classes(self, ways: int) -> None:
        """Cut the classifier of the module itself to the first rows."""
        set_rows(self._classifier, ways)
        self.num_classes = ways

    def check_spectrum(self, subset: str | Iterable[str]) -> None:
        """Refuse a subset whose gradient is 0 before the first step: its spectrum would be rounding noise."""
        names = self.subset(subset)
        if self.head != "per-class" and self._rows[0] not in names:
            raise ValueError(
                f"with head={self.head!r} all classes start alike, so that nothing below the classifier has "
                f"a gradient before the first step and {subset!r} no spectrum there: add cls to the subset"
            )

    def __call__(self, params: Mapping[str, Tensor], inputs: Inputs) -> Output:
        """Features and logits of the network with these parameters; twice differentiable in them.

        Args:
            params: by name; those that are left out are the module's own.
            inputs: a tensor, a tuple (positional arguments) or a dict (keyword arguments) of tensors.
        """
        return self._run(params, inputs, seed=task_seed())

    def pinned(self) -> Callable[[Mapping[str, Tensor], Inputs], Output]:
        """The network with the random numbers of the present task, whenever it is called."""
        return partial(self._run, seed=task_seed())

    def _run(self, params: Mapping[str, Tensor], inputs: Inputs, *, seed: int | None) -> Output:
        captured: list[Captured] = []
        token = capture_into.set(captured)
        try:
            with twice_differentiable(self._first_use.replaces), self._drawing(seed):
                result = self._call(params, inputs)
        finally:
            capture_into.reset(token)
        logits = logits_of(result)
        calls = [call for call in captured if call.module is self._classifier]
        if len(calls) != 1 or calls[0].output is not logits or calls[0].input.dim() != 2:
            raise ValueError(
                f"the output of {type(self.module).__name__} must be that of its linear layer "
                f"{self.classifier!r}, applied once to one feature vector per sample; the option classifier "
                "names the layer"
            )
        return Output(features=calls[0].input, logits=calls[0].output)

    def _call(self, params: Mapping[str, Tensor], inputs: Inputs) -> object:
        # A module in training mode may update its buffers (running statistics) in place: it gets copies.
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
        """Before the first use in the module's present mode: find its layers, refuse what is random.

        It costs one forward pass then, and nothing later.
        """
        self._first_use(lambda: self._call(params, inputs), inputs, self._device)

    def one_task(self, seed: int | None = None) -> AbstractContextManager[None]:
        """Inside, all evaluations draw the same random numbers; those of the task around it, if any."""
        return with_task_seed(self.task_seed() if seed is None else seed)

    def task_seed(self) -> int | None:
        """Of the task around the call, or a new one; None if the network may not be random."""
        if self.randomness == "error":
            return None
        seed = task_seed()
        return draw_seed() if seed is None else seed

    def check_params(self, params: Mapping[str, Tensor]) -> None:
        """Refuse a dict in which a trainable parameter is missing: the module's own would be used for it."""
        missing = [name for name in self.params() if name not in params]
        if missing:
            raise ValueError(f"params lacks {', '.join(missing)} of {type(self.module).__name__}")

    def check_deterministic(self) -> None:
        """Refuse dropout in training mode: a step that is computed twice must give the same numbers."""
        if self.randomness == "error":
            self._first_use.check_dropout()

    def subset(self, spec: str | Iterable[str]) -> tuple[str, ...]:
        """The names of a parameter subset.

        Args:
            spec: ``"cls"`` the classifier, ``"emb"`` the last layer before it, ``"ebn"`` that layer's
                normalisation, ``"all"``, ``"body"`` (all but the classifier), a union such as
                ``"cls+emb"``, or a list of name patterns such as ``["blocks.3.*", "*.bias"]``.
        """
        return select(
            spec, list(self.params()), self._first_use.layers, self._tied, type(self.module).__name__
        )

    def closed_form(self) -> tuple[str | None, str | None]:
        """Names of the classifier's trainable weight and bias, without those that are a part of the body too.

        Only for these the classifier's Gram matrix has a closed form.
        """
        prefix = f"{self.classifier}." if self.classifier else ""
        own = set(self.params()) - {*self._tied.values()}
        weight, bias = f"{prefix}weight", f"{prefix}bias"
        return weight if weight in own else None, bias if bias in own else None
