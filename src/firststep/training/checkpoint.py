"""Checkpoints: one safetensors file that a run can resume from, or that a model is loaded from.

The tensors of the meta-learner have the names of its ``state_dict()``, so
``meta.load_state_dict(safetensors.torch.load_file(path))`` loads a ``best`` checkpoint. The optimiser's state
is stored as ``optimiser/exp_avg/NAME`` etc., and the moving average of the weights, if any, as
``average/NAME``. There is no generator state: episodes are a function of the seed and their number, so the
number of the next update is enough. The header holds a digest of the contents, which is checked on loading.
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
_FAMILY = "firststep-"
_OPTIMIZER, _AVERAGE = "optimiser/", "average/"  # the spelling in stored files


class Best(TypedDict):
    """The best validation so far."""

    accuracy: float
    """Accuracy; minus the main metric if lower values of it are better."""
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
    optimizer: Params
    """The optimiser's state, such as Adam's ``exp_avg/NAME``; empty in a ``best`` checkpoint."""
    best: Best
    """The best validation so far: accuracy and update."""
    average: Params = field(default_factory=dict)
    """Moving average of the parameters; empty without one, and in a ``best`` checkpoint."""

    @property
    def tensors(self) -> Params:
        """Return all tensors of the file by name."""
        beside = {_OPTIMIZER + name: value for name, value in self.optimizer.items()}
        beside |= {_AVERAGE + name: value for name, value in self.average.items()}
        return {name: value.detach().cpu().contiguous() for name, value in (self.model | beside).items()}

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of update, best validation and all tensors with names, dtypes and shapes."""
        digest = hashlib.sha256(json.dumps([self.update, self.best], sort_keys=True).encode())
        for name, value in sorted(self.tensors.items()):
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.view(-1).view(torch.uint8).numpy().data if value.numel() else b"")
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        # One entry: safetensors writes several in no fixed order, but equal runs must have equal files.
        state = {"update": self.update, "best": self.best, "digest": self.digest}
        with replacing(path) as temporary:
            # save_file would leave its own temporary file behind if the process is killed.
            temporary.write_bytes(serialise(self.tensors, {FORMAT: json.dumps(state)}))


@dataclass(frozen=True, kw_only=True)
class _State:
    """The header of a checkpoint."""

    update: int
    best: Best
    digest: str | None = None
    """None in files of versions without a digest."""

    def __post_init__(self) -> None:
        if self.update < 0:
            raise FirststepError(f"update is {self.update}")


def load_checkpoint(path: Path, device: torch.device) -> Checkpoint:
    """Read a checkpoint and check its digest.

    Examples:
        >>> from firststep.training import load_checkpoint
        >>> load_checkpoint(run.checkpoint_path("best"), torch.device("cpu")).update <= run.config.updates
        True
    """
    try:
        with _opened(path, device) as file:
            state = _state(file, path)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise _damaged(path, str(error)) from None
    checkpoint = Checkpoint(
        update=state.update,
        best=state.best,
        model={n: value for n, value in tensors.items() if not n.startswith((_OPTIMIZER, _AVERAGE))},
        optimizer=_group(tensors, _OPTIMIZER),
        average=_group(tensors, _AVERAGE),
    )
    if state.digest not in (None, checkpoint.digest):
        raise _damaged(path, "its contents do not match their digest")
    return checkpoint


def _group(tensors: Params, prefix: str) -> Params:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def saved_update(path: Path) -> int:
    """Return the meta-update of a checkpoint without reading its tensors; 0 if there is no checkpoint."""
    return saved_progress(path)[0]


def saved_progress(path: Path) -> tuple[int, int]:
    """Return the meta-update of a checkpoint and that of the best validation so far; 0, 0 without one."""
    if not path.exists():
        return 0, 0
    try:
        with _opened(path, torch.device("cpu")) as file:
            state = _state(file, path)
            return state.update, state.best["update"]
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise _damaged(path, str(error)) from None


def is_checkpoint(path: Path) -> bool:
    """Return whether a safetensors file is a checkpoint of firststep."""
    with _opened(path, torch.device("cpu")) as file:
        return any(name.startswith(_FAMILY) for name in file.metadata() or {})


def _opened(path: Path, device: torch.device) -> Any:
    if not path.is_file():  # opening a pipe would block
        raise FirststepError(f"there is no checkpoint {path}")
    return safe_open(path, framework="pt", device=str(device))


def _state(file: Any, path: Path) -> _State:
    metadata = file.metadata() or {}
    found = next((name for name in metadata if name.startswith(_FAMILY)), None)
    if found is None:
        raise FirststepError(f"{path} is a safetensors file, but not a checkpoint of firststep")
    if found != FORMAT:
        raise FirststepError(f"{path} has the format {found}, which this version of firststep cannot read")
    where = f"{path}: header"
    return to_record(parse_json(metadata[FORMAT], where), _State, where)


def _damaged(path: Path, reason: str) -> FirststepError:
    return FirststepError(f"{path} is damaged ({reason}); use another checkpoint of the run")


def check_fits(
    path: Path, expected: dict[str, Tensor], found: dict[str, Tensor], part: str | None = None
) -> None:
    """Refuse a checkpoint of another architecture or method, and name the first difference."""
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
