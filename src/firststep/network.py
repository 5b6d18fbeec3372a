"""FunctionalModule: any module that ends in a linear layer, seen as a pure function of its parameters.

Parameters are a plain dict of tensors that functions take and return; the module itself is never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from torch import Tensor, nn
from torch.func import functional_call

Params = dict[str, Tensor]


class Output(NamedTuple):
    """What the network says of a batch of images."""

    features: Tensor
    """The classifier's input, [n, d]."""
    logits: Tensor
    """The classifier's output, [n, classes]."""


class FunctionalModule:
    """Wraps a network whose output is that of an ``nn.Linear``, named by its attribute path.

    Args:
        module: any network; batch norm, layer norm and buffers are fine. It is used in the mode
            (``train()`` or ``eval()``) it is in. Buffers are read but never changed, so an
            ``nn.BatchNorm2d`` in training mode normalises by the batch and its running statistics stay.
            Parameters with ``requires_grad=False`` stay fixed and are nobody's to learn.
        classifier: path of the final linear layer, such as ``"fc"`` or ``"head.linear"``.
        embedding: path of the last layer before it, for the subset ``emb``; default the module's own
            ``embedding`` attribute, or the last convolution in order of registration.
        embedding_norm: path of that layer's normalisation, for ``ebn``; default the module's own
            ``embedding_norm`` attribute, or the first normalisation registered after the embedding.
    """

    def __init__(
        self,
        module: nn.Module,
        classifier: str = "classifier",
        *,
        embedding: str | None = None,
        embedding_norm: str | None = None,
    ) -> None:
        modules = dict(module.named_modules())
        if not isinstance(modules.get(classifier), nn.Linear):
            linears = [name for name, part in modules.items() if isinstance(part, nn.Linear)]
            raise ValueError(
                f"classifier={classifier!r} does not name an nn.Linear of {type(module).__name__}; "
                f"its linear layers are {linears}"
            )
        for option, path in (("embedding", embedding), ("embedding_norm", embedding_norm)):
            if path is not None and path not in modules:
                raise ValueError(
                    f"{option}={path!r} is not a part of {type(module).__name__}: {list(modules)[1:]}"
                )
        self.module = module
        self.classifier = classifier
        self._embedding = embedding or getattr(module, "embedding", None) or _last_convolution(module)
        self._embedding_norm = (
            embedding_norm or getattr(module, "embedding_norm", None) or _norm_after(module, self._embedding)
        )

    def params(self) -> Params:
        """A fresh copy of the module's trainable parameters, by name."""
        return {
            name: value.detach().clone()
            for name, value in self.module.named_parameters()
            if value.requires_grad
        }

    def __call__(self, params: Mapping[str, Tensor], images: Tensor) -> Output:
        """Features and logits of the network with these parameters; differentiable in them."""
        self._refuse_dropout()
        seen: list[tuple[Tensor, Tensor]] = []
        hook = self.module.get_submodule(self.classifier).register_forward_hook(
            lambda _module, inputs, output: seen.append((inputs[0], output))
        )
        # In-place updates of buffers (running statistics) go to copies that are thrown away.
        buffers = {name: value.clone() for name, value in self.module.named_buffers()}
        try:
            logits = functional_call(self.module, {**buffers, **params}, (images,))
        finally:
            hook.remove()
        if len(seen) != 1 or seen[0][1] is not logits or seen[0][0].dim() != 2:
            raise ValueError(
                f"the output of {type(self.module).__name__} must be that of {self.classifier!r}, "
                "applied once to one feature vector per image"
            )
        return Output(features=seen[0][0], logits=logits)

    def subset(self, spec: str | Iterable[str]) -> tuple[str, ...]:
        """The names of a parameter subset.

        Args:
            spec: ``"cls"`` the classifier, ``"emb"`` the last layer before it, ``"ebn"`` that layer's
                normalisation, ``"all"``, ``"body"`` (all but the classifier), a union such as
                ``"cls+emb"``, or a list of name patterns such as ``["blocks.3.*", "*.bias"]``.
        """
        names = [name for name, value in self.module.named_parameters() if value.requires_grad]
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
            return [name for name in names if not name.startswith(f"{self.classifier}.")]
        paths = {"cls": self.classifier, "emb": self._embedding, "ebn": self._embedding_norm}
        if part not in paths:
            raise ValueError(
                f"unknown parameter subset {part!r}: it is cls, emb, ebn, body, all, a union like cls+emb, "
                f"or a list of patterns for the names {', '.join(names)}"
            )
        found = [name for name in names if paths[part] and name.startswith(f"{paths[part]}.")]
        if not found:
            raise ValueError(
                f"{type(self.module).__name__} has no parameters for the subset {part!r}; "
                f"there are {', '.join(names)}"
            )
        return found

    def _refuse_dropout(self) -> None:
        for name, part in self.module.named_modules():
            if isinstance(part, nn.modules.dropout._DropoutNd) and part.training and part.p > 0:
                raise ValueError(
                    f"{name!r} drops units at random, so a step could not be computed twice; "
                    "put it in eval() mode or set p=0"
                )


def _last_convolution(module: nn.Module) -> str | None:
    paths = [name for name, part in module.named_modules() if isinstance(part, nn.modules.conv._ConvNd)]
    return paths[-1] if paths else None


def _norm_after(module: nn.Module, embedding: str | None) -> str | None:
    paths = [name for name, _ in module.named_modules()]
    if embedding is None:
        return None
    for path in paths[paths.index(embedding) + 1 :]:
        if "Norm" in type(module.get_submodule(path)).__name__:
            return path
    return None
