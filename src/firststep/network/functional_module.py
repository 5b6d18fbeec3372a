"""FunctionalModule: any module that ends in a linear layer, seen as a pure function of its parameters.

Parameters are a plain dict of tensors that functions take and return; the module itself is never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.func import functional_call

from firststep.network.capture import Captured, capture_into, register_capture
from firststep.network.find_layers import find_classifier, last_convolution, norm_after
from firststep.network.heads import check_head, count_classes, repeat_row, set_rows, sum_rows
from firststep.task import Inputs

Params = dict[str, Tensor]

_DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
_WITH_DROPOUT = (nn.MultiheadAttention, nn.RNN, nn.LSTM, nn.GRU)


class Output(NamedTuple):
    """The network's output for a batch."""

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
        embedding: path of the last layer before it, for the subset ``emb``; default the module's own
            ``embedding`` attribute, or the last convolution in order of registration.
        embedding_norm: path of that layer's normalisation, for ``ebn``; default the module's own
            ``embedding_norm`` attribute, or the first normalisation registered after the embedding.
        head: how the classifier starts in a task: ``per-class``, ``shared`` or ``zero``, which
            :mod:`firststep.network.heads` explains. For the latter two the module's classifier is cut to the
            one row that all classes start from; :meth:`initial_params` repeats it.
    """

    def __init__(
        self,
        module: nn.Module,
        classifier: str | None = None,
        *,
        embedding: str | None = None,
        embedding_norm: str | None = None,
        head: str = "per-class",
    ) -> None:
        check_head(head)
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
        self._embedding = embedding or getattr(module, "embedding", None) or last_convolution(modules)
        self._embedding_norm = (
            embedding_norm or getattr(module, "embedding_norm", None) or norm_after(modules, self._embedding)
        )
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
        """Features and logits of the network with these parameters; differentiable in them.

        Args:
            params: by name; those that are left out are the module's own.
            inputs: a tensor, a tuple (positional arguments) or a dict (keyword arguments) of tensors.
        """
        # A module in training mode may update its buffers (running statistics) in place: it gets copies.
        buffers = {
            name: getattr(owner, key).clone()
            for name, owner, key in self._buffers
            if owner.training and getattr(owner, key) is not None
        }
        arguments: tuple[Any, ...] = inputs if isinstance(inputs, tuple) else (inputs,)
        keywords: dict[str, Any] = {}
        if isinstance(inputs, Mapping):
            arguments, keywords = (), dict(inputs)
        captured: list[Captured] = []
        token = capture_into.set(captured)
        try:
            result = functional_call(self.module, {**buffers, **params}, arguments, keywords)
        finally:
            capture_into.reset(token)
        logits = _logits(result)
        calls = [call for call in captured if call.module is self._classifier]
        if len(calls) != 1 or calls[0].output is not logits or calls[0].input.dim() != 2:
            raise ValueError(
                f"the output of {type(self.module).__name__} must be that of its linear layer "
                f"{self.classifier!r}, applied once to one feature vector per sample; the option classifier "
                "names the layer"
            )
        return Output(features=calls[0].input, logits=calls[0].output)

    def check_params(self, params: Mapping[str, Tensor]) -> None:
        """Refuse a dict in which a trainable parameter is missing: the module's own would be used for it."""
        missing = [name for name in self.params() if name not in params]
        if missing:
            raise ValueError(f"params lacks {', '.join(missing)} of {type(self.module).__name__}")

    def check_deterministic(self) -> None:
        """Refuse dropout in training mode: a step that is computed twice must give the same numbers."""
        for name, part in self.module.named_modules():
            rate = part.p if isinstance(part, _DROPOUT) else 0.0
            if isinstance(part, _WITH_DROPOUT):
                rate = part.dropout
            if part.training and rate > 0:
                raise ValueError(
                    f"{name!r} drops units at random, so a step could not be computed twice; "
                    "put it in eval() mode or set its rate to 0"
                )

    def subset(self, spec: str | Iterable[str]) -> tuple[str, ...]:
        """The names of a parameter subset.

        Args:
            spec: ``"cls"`` the classifier, ``"emb"`` the last layer before it, ``"ebn"`` that layer's
                normalisation, ``"all"``, ``"body"`` (all but the classifier), a union such as
                ``"cls+emb"``, or a list of name patterns such as ``["blocks.3.*", "*.bias"]``.
        """
        names = list(self.params())
        wanted: set[str] = set()
        if isinstance(spec, str):
            for part in spec.split("+"):
                wanted.update(self._named_subset(part.strip(), names))
        else:
            for pattern in spec:
                matches = [name for name in names if fnmatchcase(name, pattern)]
                if not matches:
                    raise ValueError(f"no parameter matches {pattern!r}; there are {', '.join(names)}")
                wanted.update(matches)
        if not wanted:
            raise ValueError(f"the parameter subset {spec!r} is empty; there are {', '.join(names)}")
        return tuple(name for name in names if name in wanted)

    def _named_subset(self, part: str, names: list[str]) -> list[str]:
        if part == "all":
            return names
        if part == "body":
            return [name for name in names if not _is_inside(name, self.classifier)]
        paths = {"cls": self.classifier, "emb": self._embedding, "ebn": self._embedding_norm}
        if part not in paths:
            raise ValueError(
                f"unknown parameter subset {part!r}: it is cls, emb, ebn, body, all, a union like cls+emb, "
                f"or a list of patterns for the names {', '.join(names)}"
            )
        path = paths[part]
        found = [name for name in names if path is not None and _is_inside(name, path)]
        if not found:
            raise ValueError(
                f"{type(self.module).__name__} has no parameters for the subset {part!r}; "
                f"there are {', '.join(names)}"
            )
        return found


def _logits(result: object) -> object:
    """The logits of what a network returns: a tensor, a dict or an object that has them."""
    if isinstance(result, Mapping):
        return result.get("logits")
    return result if isinstance(result, Tensor) else getattr(result, "logits", None)


def _is_inside(name: str, path: str) -> bool:
    """Whether a parameter belongs to the module at a path; the empty path is the whole network."""
    return not path or name.startswith(f"{path}.")
