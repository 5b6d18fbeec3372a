"""Which layers of a network are its classifier, its embedding and the embedding's normalisation."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

CONVOLUTIONS: tuple[type[nn.Module], ...] = (
    nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
)  # fmt: skip
_USUAL_CLASSIFIERS = ("classifier", "fc", "head")


def find_classifier(module: nn.Module, modules: Mapping[str, nn.Module], path: str | None) -> str:
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


def last_convolution(modules: Mapping[str, nn.Module]) -> str | None:
    paths = [name for name, part in modules.items() if isinstance(part, CONVOLUTIONS)]
    return paths[-1] if paths else None


def norm_after(modules: Mapping[str, nn.Module], embedding: str | None) -> str | None:
    if embedding is None:
        return None
    paths = list(modules)
    for path in paths[paths.index(embedding) + 1 :]:
        if "Norm" in type(modules[path]).__name__:
            return path
    return None
