"""FunctionalModule: any module that ends in a linear layer, seen as a pure function of its parameters.

Parameters are a plain dict of tensors that functions take and return; the module itself is never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from firststep.task import Inputs

Params = dict[str, Tensor]

CONVOLUTIONS: tuple[type[nn.Module], ...] = (
    nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
)  # fmt: skip
_DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
_WITH_DROPOUT = (nn.MultiheadAttention, nn.RNN, nn.LSTM, nn.GRU)
_USUAL_CLASSIFIERS = ("classifier", "fc", "head")


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
    """

    def __init__(
        self,
        module: nn.Module,
        classifier: str | None = None,
        *,
        embedding: str | None = None,
        embedding_norm: str | None = None,
    ) -> None:
        modules = dict(module.named_modules())
        for option, path in (("embedding", embedding), ("embedding_norm", embedding_norm)):
            if path is not None and path not in modules:
                raise ValueError(
                    f"{option}={path!r} is not a part of {type(module).__name__}: {list(modules)[1:]}"
                )
        self.module = module
        self.classifier = _find_classifier(module, modules, classifier)
        self._classifier = modules[self.classifier]
        _register_capture(self._classifier)
        self._embedding = embedding or getattr(module, "embedding", None) or _last_convolution(modules)
        self._embedding_norm = (
            embedding_norm or getattr(module, "embedding_norm", None) or _norm_after(modules, self._embedding)
        )
        self._buffers = [
            (f"{path}.{name}" if path else name, owner, name)
            for path, owner in modules.items()
            for name, _ in owner.named_buffers(recurse=False)
        ]

    def params(self) -> Params:
        """The module's trainable parameters by name: the parameters themselves, not copies."""
        return {name: value for name, value in self.module.named_parameters() if value.requires_grad}

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
        captured: list[_Captured] = []
        token = _capture_into.set(captured)
        try:
            result = functional_call(self.module, {**buffers, **params}, arguments, keywords)
        finally:
            _capture_into.reset(token)
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


class _Captured(NamedTuple):
    """One call of a classifier."""

    module: nn.Module
    input: Tensor
    output: Tensor


_capture_into: ContextVar[list[_Captured] | None] = ContextVar("firststep_capture", default=None)
_REGISTERED = "_firststep_capture"


def _capture(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
    """The forward hook of a classifier: does nothing except inside a call of a FunctionalModule."""
    if torch.compiler.is_dynamo_compiling():  # the user's own torch.compile
        return
    captured = _capture_into.get()
    if captured is not None:
        captured.append(_Captured(module, inputs[0], output))


def _register_capture(classifier: nn.Module) -> None:
    """Once for a layer. The mark is copied and pickled with the layer, as its hooks are."""
    if not getattr(classifier, _REGISTERED, False):
        classifier.register_forward_hook(_capture)
        setattr(classifier, _REGISTERED, True)


def _logits(result: object) -> object:
    """The logits of what a network returns: a tensor, a dict or an object that has them."""
    if isinstance(result, Mapping):
        return result.get("logits")
    return result if isinstance(result, Tensor) else getattr(result, "logits", None)


def _find_classifier(module: nn.Module, modules: Mapping[str, nn.Module], path: str | None) -> str:
    linears = [name for name, part in modules.items() if isinstance(part, nn.Linear)]
    if path is None:
        usual = [name for name in _USUAL_CLASSIFIERS if name in linears]
        if not linears:
            raise ValueError(f"{type(module).__name__} has no nn.Linear that could be its classifier")
        return usual[0] if usual else linears[-1]
    if path not in linears:
        raise ValueError(
            f"classifier={path!r} does not name an nn.Linear of {type(module).__name__}; "
            f"its linear layers are {linears}"
        )
    return path


def _is_inside(name: str, path: str) -> bool:
    """Whether a parameter belongs to the module at a path; the empty path is the whole network."""
    return not path or name.startswith(f"{path}.")


def _last_convolution(modules: Mapping[str, nn.Module]) -> str | None:
    paths = [name for name, part in modules.items() if isinstance(part, CONVOLUTIONS)]
    return paths[-1] if paths else None


def _norm_after(modules: Mapping[str, nn.Module], embedding: str | None) -> str | None:
    if embedding is None:
        return None
    paths = list(modules)
    for path in paths[paths.index(embedding) + 1 :]:
        if "Norm" in type(modules[path]).__name__:
            return path
    return None
