"""Find the parameters of a network by the kind of their layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import Tensor, nn

from firststep.network import FunctionalModule

CONVOLUTIONS_2D: tuple[type[nn.Module], ...] = (nn.Conv2d,)
LINEAR: tuple[type[nn.Module], ...] = (nn.Linear,)


def layers(
    model: FunctionalModule, params: Mapping[str, Tensor], kinds: tuple[type[nn.Module], ...]
) -> Iterator[str]:
    """Yield the paths of the layers of these kinds whose weight is in ``params``, as registered."""
    for path, module in model.module.named_modules():
        if isinstance(module, kinds) and f"{path}.weight" in params:
            yield path


def norm_parameters(model: FunctionalModule, params: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Return the names of the scales and shifts of all normalisation layers."""
    return tuple(
        name
        for path, module in model.module.named_modules()
        if "Norm" in type(module).__name__
        for name in (f"{path}.weight", f"{path}.bias")
        if name in params
    )


def without_norms(model: FunctionalModule, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names without scales and shifts of normalisation layers."""
    norms = norm_parameters(model, dict(model.module.named_parameters()))
    return tuple(name for name in names if name not in norms)
