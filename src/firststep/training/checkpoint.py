"""Checkpoints: one safetensors file with all that a run needs to continue, or to be used.

The tensors of the meta-learner have the names of its ``state_dict()``, so that a ``best`` checkpoint is
loaded with ``meta.load_state_dict(safetensors.torch.load_file(path))``. The optimiser's are beside them, as
``optimiser/exp_avg/NAME`` and so on. Episodes are a pure function of the seed and their number, so there is
no generator state to keep: the number of the next update is enough. A digest of all of it is written beside
it and checked when it is read: a flipped bit or two exchanged tensors are noticed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from firststep.errors import FirststepError
from firststep.network import Params
from firststep.utils import replacing

FORMAT = "firststep-2"
OLD_FORMAT = "firststep-1"
_OPTIMISER = "optimiser/"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The state of a run after ``update`` meta-updates."""

    update: int
    model: Params
    """The meta-learner's ``state_dict()``."""
    optimiser: Params
    """Adam's moments as ``exp_avg/NAME`` ...; empty in a checkpoint that is only to be used."""
    best: dict[str, Any]
    """The best validation so far: its accuracy and update."""

    @property
    def tensors(self) -> Params:
        """All tensors of the file, by their names there."""
        both = self.model | {_OPTIMISER + name: value for name, value in self.optimiser.items()}
        return {name: value.detach().cpu().contiguous() for name, value in both.items()}

    @cached_property
    def digest(self) -> str:
        """Of everything in it: names, types, shapes and bits of the tensors, update and best validation."""
        digest = hashlib.sha256(json.dumps([self.update, self.best], sort_keys=True).encode())
        for name, value in sorted(self.tensors.items()):
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.view(-1).view(torch.uint8).numpy().data if value.numel() else b"")
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        # One entry: safetensors writes several in no fixed order, and equal runs shall have equal files.
        state = {"update": self.update, "best": self.best, "digest": self.digest}
        with replacing(path) as temporary:
            try:
                save_file(self.tensors, temporary, {FORMAT: json.dumps(state)})
            except SafetensorError as error:  # how safetensors reports what the disk says
                raise OSError(str(error)) from error


def load_checkpoint(path: Path, device: torch.device) -> Checkpoint:
    if not path.is_file():
        raise FirststepError(f"there is no checkpoint {path}")
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        if OLD_FORMAT in metadata:
            state = json.loads(metadata[OLD_FORMAT])
            tensors = {_new_name(name): value for name, value in tensors.items()}
            best = state["facts"]["best"]
        elif FORMAT in metadata:
            state = json.loads(metadata[FORMAT])
            best = state["best"]
        else:
            raise FirststepError(f"{path} is a safetensors file, but not a checkpoint of firststep")
        checkpoint = Checkpoint(
            update=state["update"],
            best=best,
            model={name: value for name, value in tensors.items() if not name.startswith(_OPTIMISER)},
            optimiser={
                name.removeprefix(_OPTIMISER): value
                for name, value in tensors.items()
                if name.startswith(_OPTIMISER)
            },
        )
        # Files that were written before there were digests have none.
        if state.get("digest", checkpoint.digest) != checkpoint.digest:
            raise ValueError("its contents do not match their digest")
        return checkpoint
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise FirststepError(f"{path} is damaged ({error}); use another checkpoint of the run") from None


def _new_name(name: str) -> str:
    """Format 1 had the groups ``params/``, ``own/`` and ``optimiser/KIND/GROUP/``."""
    group, _, rest = name.partition("/")
    if group == "optimiser":
        kind, _, parameter = rest.partition("/")
        return f"{_OPTIMISER}{kind}/{_new_name(parameter)}"
    if group == "own":
        return f"rule_params.{rest.replace('.', '/')}"
    return f"network.{rest}"


def saved_update(path: Path) -> int:
    """The meta-update that a checkpoint is from, without reading its tensors; 0 if there is none."""
    if not path.is_file():
        return 0
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            return int(json.loads(metadata[FORMAT if FORMAT in metadata else OLD_FORMAT])["update"])
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise FirststepError(f"{path} is damaged ({error})") from None


def check_fits(path: Path, expected: dict[str, Tensor], found: dict[str, Tensor]) -> None:
    """A checkpoint of another architecture or method is refused, with the first difference."""
    for name in sorted(expected.keys() | found.keys()):
        what = "method" if name.startswith("rule_params.") else "network"
        if name not in found:
            reason = f"it lacks {name}"
        elif name not in expected:
            reason = f"it has {name}, which the {what} does not"
        elif found[name].shape != expected[name].shape:
            reason = f"{name} has shape {tuple(found[name].shape)}, not {tuple(expected[name].shape)}"
        else:
            continue
        raise FirststepError(f"{path} does not fit the {what} of this run's configuration: {reason}")
