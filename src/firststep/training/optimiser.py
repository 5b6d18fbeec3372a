"""Adam's state as named tensors, so that it can live in a safetensors file."""

from __future__ import annotations

import torch
from torch import Tensor

from firststep.errors import FirststepError


def optimiser_state(optimiser: torch.optim.Optimizer, named: dict[str, Tensor]) -> dict[str, Tensor]:
    """{"exp_avg/NAME": ..., "exp_avg_sq/NAME": ..., "step/NAME": ...} for every parameter."""
    return {
        f"{kind}/{name}": value
        for name, parameter in named.items()
        for kind, value in optimiser.state[parameter].items()
    }


def restore_optimiser(
    optimiser: torch.optim.Optimizer, named: dict[str, Tensor], saved: dict[str, Tensor]
) -> None:
    """Put back what :func:`optimiser_state` gave."""
    for name, parameter in named.items():
        kinds = {key.split("/", 1)[0]: value for key, value in saved.items() if key.split("/", 1)[1] == name}
        if not kinds:
            raise FirststepError(f"the checkpoint lacks the optimiser's state for {name}")
        # Adam counts its steps on the CPU, whatever device the parameters are on.
        optimiser.state[parameter] = {
            kind: value.cpu() if kind == "step" else value.to(parameter.device)
            for kind, value in kinds.items()
        }
