"""An adapted classifier read back from its weights in safetensors."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import nn

from firststep.deployment.card import KEY, ModelCard, read_card
from firststep.deployment.image_classifier import ImageClassifier
from firststep.deployment.saving import WEIGHTS, image_classifier
from firststep.errors import FirststepError
from firststep.evaluation._internal import STEPS, HeadForm, blank_network
from firststep.training import TrainConfig, build_meta_learner
from firststep.utils import read_bytes


def weights_in(path: Path) -> Path:
    """Return the file of weights in a folder of ``firststep adapt``; a file stays as it is."""
    if not path.is_dir():
        return path
    if not (path / WEIGHTS).is_file():
        raise FirststepError(f"{path} is not a folder of `firststep adapt`: it has no {WEIGHTS}")
    return path / WEIGHTS


def load_classifier(path: Path, name: str | None = None) -> tuple[ImageClassifier, ModelCard]:
    """Return the module and card in a folder of ``firststep adapt`` or its .safetensors file."""
    path = weights_in(path)
    name = name or str(path)
    if path.suffix.lower() in (".onnx", ".pt2", ".html"):
        raise FirststepError(
            f"{name} is a finished program; export from the folder that `firststep adapt` wrote, or from a "
            ".safetensors file"
        )
    read_bytes(path)  # refuses anything but a regular file
    try:
        with safe_open(path, framework="pt") as file:
            card = read_card((file.metadata() or {}).get(KEY), name)
            weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError, ValueError) as error:
        raise FirststepError(f"{name} is damaged: {error}") from None
    config = TrainConfig.from_json(card.config, name)
    meta = build_meta_learner(config, card.preprocessing, device=torch.device("cpu"), weights_follow=True)
    head = card.head
    if head is None and card.classifier != STEPS:  # written before cards stored the form of the head
        head, last = HeadForm(), meta.functional.classifier
        weights = {
            key: value[None] if key in (f"{last}.weight", f"{last}.bias") else value
            for key, value in weights.items()
        }
        if f"{last}.weight" in weights:
            weights[f"{last}.centre"] = torch.zeros(weights[f"{last}.weight"].shape[-1])
    if "up.weight" in weights and config.backbone.startswith("efficientnet"):
        raise FirststepError(
            f"{name} is a photo classifier of an older firststep, whose network is gone: run "
            "`firststep adapt builtin:photos` again on the same images"
        )
    network = blank_network(meta, len(card.classes), head)
    _fill(network, weights, name)
    return image_classifier(network, card).eval(), card


def _fill(network: nn.Module, weights: dict[str, torch.Tensor], name: str) -> None:
    wanted = network.state_dict()
    for key in sorted({*wanted, *weights}):
        if key not in weights or key not in wanted:
            what = "is missing" if key in wanted else "is not part of it"
            raise FirststepError(f"{name} does not fit the network of its configuration: {key} {what}")
        if weights[key].shape != wanted[key].shape:
            raise FirststepError(
                f"{name} does not fit the network of its configuration: {key} has the shape "
                f"{list(weights[key].shape)}, not {list(wanted[key].shape)}"
            )
    network.load_state_dict(weights)
