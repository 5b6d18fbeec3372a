"""Find a network's classifier, its embedding and the embedding's normalisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import nn
from torch.nn.utils import parametrize

CONVOLUTIONS: tuple[type[nn.Module], ...] = (
    nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
)  # fmt: skip
_USUAL_CLASSIFIERS = ("classifier", "fc", "head")


def find_classifier(module: nn.Module, modules: Mapping[str, nn.Module], path: str | None) -> str | None:
    """Return the path of the last layer: ``path``, a usual name, or the last registered ``nn.Linear``."""
    linears = [name for name, part in modules.items() if isinstance(part, nn.Linear)]
    if path is None:
        usual = [name for name in _USUAL_CLASSIFIERS if name in linears]
        return usual[0] if usual else next(reversed(linears), None)
    if path not in linears:
        raise ValueError(
            f"classifier={path!r} does not name an nn.Linear of {type(module).__name__}; "
            f"its linear layers are {linears}"
        )
    return path


def own_path(module: nn.Module, attribute: str) -> str | None:
    """Return the path in an attribute of the module; None if the attribute is a layer or missing."""
    path = getattr(module, attribute, None)
    return path if isinstance(path, str) else None


def find_embedding(modules: Mapping[str, nn.Module], order: Sequence[str], classifier: str) -> str | None:
    """Return the path of the last layer with a weight matrix before the classifier.

    Layers with only scales and shifts do not count, nor do modules that contain the classifier.

    Args:
        modules: modules by path.
        order: paths in order of execution, or of registration while that is not known.
        classifier: path of the classifier.
    """
    before = order[: _last(order, classifier)] if classifier in order else order
    before = [path for path in before if path] or order  # the classifier may be registered first
    paths = [path for path in before if _has_matrix(path, modules[path]) and not _holds(path, classifier)]
    return paths[-1] if paths else None


def norm_after(modules: Mapping[str, nn.Module], order: Sequence[str], embedding: str | None) -> str | None:
    """Return the path of the first normalisation after the embedding."""
    if embedding is None or embedding not in order:
        return None
    for path in order[_last(order, embedding) + 1 :]:
        if _is_norm(modules[path]):
            return path
    return None


def _is_norm(module: nn.Module) -> bool:
    """Return whether the module is a normalisation by its name, and not a block that contains one."""
    return "Norm" in type(module).__name__ and not any(list(part.parameters()) for part in module.children())


def _has_matrix(path: str, module: nn.Module) -> bool:
    """Return whether the module itself, not a layer inside it, has a weight matrix."""
    if "parametrizations" in path.split(".") or _is_norm(module):
        return False  # a parametrization is a part of the layer whose weight it computes
    return parametrize.is_parametrized(module) or any(
        value.dim() > 1 for value in module.parameters(recurse=False)
    )


def _holds(path: str, inner: str) -> bool:
    return not path or path == inner or inner.startswith(f"{path}.")


def _last(order: Sequence[str], path: str) -> int:
    return len(order) - 1 - list(reversed(order)).index(path)
