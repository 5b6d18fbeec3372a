"""Checkpoints: one safetensors file that holds all a run needs to go on, or to be used.

Episodes are a pure function of the seed and their number, so there is no generator state to keep: the
number of the next update is enough.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from firststep.errors import FirststepError
from firststep.network import Params
from firststep.utils.files import replacing

FORMAT = "firststep-1"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The state of a run after ``update`` meta-updates."""

    update: int
    params: Params
    """θ"""
    own: Params
    """The update rule's own parameters."""
    optimiser: Params
    """Adam's moments; empty in a checkpoint that is only to be used."""
    facts: dict[str, Any]
    """What else to remember: the best validation so far."""

    def save(self, path: Path) -> None:
        groups = {"params": self.params, "own": self.own, "optimiser": self.optimiser}
        tensors = {
            f"{group}/{name}": value.detach().cpu().contiguous()
            for group, members in groups.items()
            for name, value in members.items()
        }
        # One entry: safetensors writes several in no fixed order, and equal runs shall have equal files.
        metadata = {FORMAT: json.dumps({"update": self.update, "facts": self.facts})}
        with replacing(path) as temporary:
            try:
                save_file(tensors, temporary, metadata)
            except SafetensorError as error:  # how safetensors reports what the disk says
                raise OSError(str(error)) from error


def load_checkpoint(path: Path, device: torch.device) -> Checkpoint:
    if not path.is_file():
        raise FirststepError(f"there is no checkpoint {path}")
    groups: dict[str, dict[str, Tensor]] = {"params": {}, "own": {}, "optimiser": {}}
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            metadata = file.metadata() or {}
            if FORMAT not in metadata:
                raise FirststepError(f"{path} is a safetensors file, but not a checkpoint of firststep")
            for key in file.keys():  # noqa: SIM118 (not a dict)
                group, name = key.split("/", 1)
                groups[group][name] = file.get_tensor(key)
            state = json.loads(metadata[FORMAT])
            return Checkpoint(update=state["update"], facts=state["facts"], **groups)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise FirststepError(f"{path} is damaged ({error}); use another checkpoint of the run") from None


def saved_update(path: Path) -> int:
    """The meta-update that a checkpoint is from, without reading its tensors; 0 if there is none."""
    if not path.is_file():
        return 0
    try:
        with safe_open(path, framework="pt") as file:
            return int(json.loads((file.metadata() or {})[FORMAT])["update"])
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise FirststepError(f"{path} is damaged ({error})") from None


def check_fits(path: Path, expected: Params, found: Params, what: str) -> None:
    """A checkpoint of another architecture is named as such, with the first difference."""
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            reason = f"it lacks {name}"
        elif name not in expected:
            reason = f"it has {name}, which the {what} does not"
        elif found[name].shape != expected[name].shape:
            reason = f"{name} has shape {tuple(found[name].shape)}, not {tuple(expected[name].shape)}"
        else:
            continue
        raise FirststepError(f"{path} does not fit the {what} of this run's configuration: {reason}")
