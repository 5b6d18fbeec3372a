"""Initial weights of a training: of a pretraining, of another run, or from a safetensors file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from firststep.errors import FirststepError
from firststep.meta_learner import MetaLearner
from firststep.training.builtin import BUILTIN
from firststep.training.checkpoint import is_checkpoint, load_checkpoint
from firststep.training.run import open_run
from firststep.training.run_folder import RunFolder

NETWORK, RULE = "network.", "rule_params."


@dataclass(frozen=True)
class InitialWeights:
    source: str
    """The source as the user named it."""
    tensors: dict[str, Tensor]
    """Weights by the names of the meta-learner's ``state_dict()``."""
    digest: str
    """Digest of names, dtypes, shapes and values."""


def read_initial_weights(source: str) -> InitialWeights:
    """Read weights from a folder with a ``best`` checkpoint, ``builtin:NAME``, or a safetensors file.

    A safetensors file has the names of the network's ``state_dict()`` or of a checkpoint.
    """
    path = _file(source)
    try:
        if is_checkpoint(path):
            tensors = load_checkpoint(path, torch.device("cpu")).model
        else:
            tensors = {NETWORK + name: value for name, value in load_file(path).items()}
    except (SafetensorError, OSError) as error:
        raise FirststepError(f"`init` {source}: {path} cannot be read ({error})") from None
    digest = hashlib.sha256()
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.contiguous().view(-1).view(torch.uint8).numpy().data if value.numel() else b"")
    return InitialWeights(source, tensors, digest.hexdigest()[:16])


def _file(source: str) -> Path:
    if source.startswith(BUILTIN):
        return open_run(source).checkpoint_path("best")
    path = Path(source).expanduser()
    if path.is_dir():
        path = RunFolder(path).checkpoint_path("best")
        if not path.is_file():
            raise FirststepError(f"`init` {source}: there is no best checkpoint in it yet ({path})")
    if not path.is_file():
        raise FirststepError(
            f"`init` {source}: there is no such file or folder; give a folder of `firststep pretrain` or "
            f"of a run, {BUILTIN}NAME or a safetensors file"
        )
    return path


def use_initial_weights(meta: MetaLearner, initial: InitialWeights) -> list[str]:
    """Copy the weights into a new meta-learner; return the names that keep their own initial values.

    The classifier keeps its own if its size differs, and so do the rule's parameters: pretraining is meant to
    serve other numbers of classes and other methods. All other weights of the file must fit.
    """
    own = meta.state_dict()
    classifier = NETWORK + meta.functional.classifier + "."
    taken: dict[str, Tensor] = {}
    for name, value in initial.tensors.items():
        fits = name in own and own[name].shape == value.shape
        if fits:
            taken[name] = value.to(own[name].dtype)
        elif not name.startswith((classifier, RULE)):
            here = f"shape {tuple(own[name].shape)} here" if name in own else "no counterpart here"
            raise FirststepError(
                f"`init` {initial.source} does not fit the network: {name.removeprefix(NETWORK)} has shape "
                f"{tuple(value.shape)} there and {here}"
            )
    if not any(name.startswith(NETWORK) for name in taken):
        raise FirststepError(f"`init` {initial.source} has no weights of this network")
    meta.load_state_dict(own | taken)
    return [name for name in own if name not in taken]
