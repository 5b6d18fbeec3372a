"""Checkpoints: one safetensors file with all that a run needs to continue, or to be used.

The tensors of the meta-learner have the names of its ``state_dict()``, so that a ``best`` checkpoint is
loaded with ``meta.load_state_dict(safetensors.torch.load_file(path))``. The optimiser's are beside them, as
``optimiser/exp_avg/NAME`` and so on, and so is the average of the weights, if there is one, as
``average/NAME``. Episodes are a pure function of the seed and their number, so there is
no generator state to keep: the number of the next update is enough. A digest of all of it is written beside
it and checked when it is read: a flipped bit or two exchanged tensors are noticed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialise
from torch import Tensor

from firststep.errors import FirststepError
from firststep.network import Params
from firststep.utils import parse_json, replacing, to_record

FORMAT = "firststep-2"
OLD_FORMAT = "firststep-1"
_FAMILY = "firststep-"
_OPTIMISER, _AVERAGE = "optimiser/", "average/"


class Best(TypedDict):
    """The best validation so far."""

    accuracy: float
    update: int


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The state of a run after ``update`` meta-updates.

    Examples:
        >>> checkpoint = run.load("last", torch.device("cpu"))
        >>> checkpoint.update, "network.classifier.weight" in checkpoint.model
        (2, True)
    """

    update: int
    model: Params
    """The meta-learner's ``state_dict()``."""
    optimiser: Params
    """Adam's moments as ``exp_avg/NAME`` ...; empty in a checkpoint that is only to be used."""
    best: Best
    """The best validation so far: its accuracy and update."""
    average: Params = field(default_factory=dict)
    """Moving average of the parameters; empty if there is none, or if the checkpoint is only to be used."""

    @property
    def tensors(self) -> Params:
        """All tensors of the file, by their names there."""
        beside = {_OPTIMISER + name: value for name, value in self.optimiser.items()}
        beside |= {_AVERAGE + name: value for name, value in self.average.items()}
        return {name: value.detach().cpu().contiguous() for name, value in (self.model | beside).items()}

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
            # Not by save_file, which has a temporary file of its own that would outlive a kill.
            temporary.write_bytes(serialise(self.tensors, {FORMAT: json.dumps(state)}))


@dataclass(frozen=True, kw_only=True)
class _State:
    """What the header of a file says beside its tensors."""

    update: int
    best: Best
    digest: str | None = None
    """Files that were written before there were digests have none."""

    def __post_init__(self) -> None:
        if self.update < 0:
            raise FirststepError(f"update is {self.update}")


def load_checkpoint(path: Path, device: torch.device) -> Checkpoint:
    """The checkpoint in a file, of this format or the one before.

    Examples:
        >>> from firststep.training import load_checkpoint
        >>> load_checkpoint(run.checkpoint_path("best"), torch.device("cpu")).update <= run.config.updates
        True
    """
    try:
        with _opened(path, device) as file:
            state, is_old = _state(file, path)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise _damaged(path, str(error)) from None
    if is_old:
        tensors = {_new_name(name): value for name, value in tensors.items()}
    checkpoint = Checkpoint(
        update=state.update,
        best=state.best,
        model={n: value for n, value in tensors.items() if not n.startswith((_OPTIMISER, _AVERAGE))},
        optimiser=_group(tensors, _OPTIMISER),
        average=_group(tensors, _AVERAGE),
    )
    if state.digest not in (None, checkpoint.digest):
        raise _damaged(path, "its contents do not match their digest")
    return checkpoint


def _group(tensors: Params, prefix: str) -> Params:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def saved_update(path: Path) -> int:
    """The meta-update that a checkpoint is from, without reading its tensors; 0 if there is none."""
    return saved_progress(path)[0]


def saved_progress(path: Path) -> tuple[int, int]:
    """The meta-update that a checkpoint is from and that of the best validation until then."""
    if not path.exists():
        return 0, 0
    try:
        with _opened(path, torch.device("cpu")) as file:
            state = _state(file, path)[0]
            return state.update, state.best["update"]
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise _damaged(path, str(error)) from None


def is_checkpoint(path: Path) -> bool:
    """Whether a safetensors file is one of ours."""
    with _opened(path, torch.device("cpu")) as file:
        return any(name.startswith(_FAMILY) for name in file.metadata() or {})


def _opened(path: Path, device: torch.device) -> Any:
    if not path.is_file():  # a pipe would be waited for
        raise FirststepError(f"there is no checkpoint {path}")
    return safe_open(path, framework="pt", device=str(device))


def _state(file: Any, path: Path) -> tuple[_State, bool]:
    """What the header says, and whether the file is of the old format."""
    metadata = file.metadata() or {}
    known = next((name for name in (FORMAT, OLD_FORMAT) if name in metadata), None)
    if known is None:
        newer = next((name for name in metadata if name.startswith(_FAMILY)), None)
        if newer:
            raise FirststepError(
                f"{path} has the format {newer}, which this version of firststep cannot read"
            )
        raise FirststepError(f"{path} is a safetensors file, but not a checkpoint of firststep")
    content = parse_json(metadata[known], f"{path}: header")
    if known == OLD_FORMAT and isinstance(content, dict) and isinstance(content.get("facts"), dict):
        content = {**content, "best": content["facts"].get("best")}
    return to_record(content, _State, f"{path}: header"), known == OLD_FORMAT


def _damaged(path: Path, reason: str) -> FirststepError:
    return FirststepError(f"{path} is damaged ({reason}); use another checkpoint of the run")


def _new_name(name: str) -> str:
    """Format 1 had the groups ``params/``, ``own/`` and ``optimiser/KIND/GROUP/``."""
    group, _, rest = name.partition("/")
    if group == "optimiser":
        kind, _, parameter = rest.partition("/")
        return f"{_OPTIMISER}{kind}/{_new_name(parameter)}"
    if group == "own":
        return f"rule_params.{rest.replace('.', '/')}"
    return f"network.{rest}"


def check_fits(
    path: Path, expected: dict[str, Tensor], found: dict[str, Tensor], part: str | None = None
) -> None:
    """A checkpoint of another architecture or method is refused, with the first difference."""
    for name in sorted(expected.keys() | found.keys()):
        what = part or ("method" if name.startswith("rule_params.") else "network")
        if name not in found:
            reason = f"it lacks {name}"
        elif name not in expected:
            reason = f"it has {name}, which the {what} does not"
        elif found[name].shape != expected[name].shape:
            reason = f"{name} has shape {tuple(found[name].shape)}, not {tuple(expected[name].shape)}"
        elif found[name].dtype != expected[name].dtype:
            reason = f"{name} has type {found[name].dtype}, not {expected[name].dtype}"
        else:
            continue
        raise FirststepError(f"{path} does not fit the {what} of this run's configuration: {reason}")
