"""Adapting a meta-learner to folders of somebody's own images, and classifying others with it.

Batch norm normalises by the batch it sees, so it matters what else is in the batch. A query image is
classified in a batch with the support images and no other query: its answer depends on the support set and
on itself alone. ``transductive=True`` is the papers' protocol instead: all query images form one batch, and
each changes the others' answers a little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as serialise
from torch import Tensor

from firststep.adaptation import StepChoice
from firststep.backbones import body_features
from firststep.data import IMAGE_ENDINGS, Preprocessing, decode, entries, require_regular
from firststep.errors import FirststepError
from firststep.meta_learner import MetaLearner
from firststep.network import Params
from firststep.utils import make_folder, replacing, write_json


@dataclass(frozen=True)
class ImageSupport:
    """Labelled images: one folder a class."""

    classes: list[str]
    images: Tensor
    """Or the features of a network's frozen body, once :func:`adapt_to_images` has computed them."""
    labels: Tensor


def image_files(path: Path) -> list[Path]:
    """An image, or all images directly in a folder, sorted by name; hidden ones are left out."""
    if not path.is_dir():
        require_regular(path)
        return [path]
    files = [file for file in entries(path) if file.suffix.lower() in IMAGE_ENDINGS and not file.is_dir()]
    if not files:
        raise FirststepError(f"{path} has no images ({', '.join(sorted(IMAGE_ENDINGS))})")
    return files


def load_images(files: Sequence[Path], preprocessing: Preprocessing, device: torch.device) -> Tensor:
    pixels = np.stack([decode(file, str(file), preprocessing) for file in files])
    return torch.from_numpy(preprocessing.normalise(pixels)).to(device)


def load_support(folder: Path, meta: MetaLearner, preprocessing: Preprocessing) -> ImageSupport:
    """The support set in ``folder``: a subfolder for each class, named by it, with a few images each."""
    if not folder.is_dir():
        raise FirststepError(f"{folder} is not a folder; the support set has one subfolder for each class")
    folders = [path for path in entries(folder) if path.is_dir()]
    try:
        meta.for_classes(len(folders))
    except ValueError as error:
        found = f": {', '.join(path.name for path in folders)}" if folders else ""
        raise FirststepError(f"{folder} has {len(folders)} class folders{found}; {error}") from None
    files = [image_files(path) for path in folders]
    images = [load_images(group, preprocessing, meta.device) for group in files]
    labels = torch.arange(len(folders)).repeat_interleave(torch.tensor([len(group) for group in files]))
    return ImageSupport([path.name for path in folders], torch.cat(images), labels.to(meta.device))


@dataclass(frozen=True)
class AdaptedModel:
    """A model adapted to a support set of images."""

    meta: MetaLearner
    support: ImageSupport
    params: Params
    choice: StepChoice
    """How many steps were taken, and why."""

    @torch.no_grad()
    def probabilities(self, queries: Tensor, transductive: bool = False) -> Tensor:
        """[queries, classes], each row summing to 1."""
        model = self.meta.functional
        queries = body_features(self.meta.network, queries)
        if transductive:
            logits = model(self.params, queries).logits
        else:
            batches = (torch.cat([self.support.images, query[None]]) for query in queries)
            logits = torch.stack([model(self.params, batch).logits[-1] for batch in batches])
        if not bool(logits.isfinite().all()):
            raise FirststepError(f"the outputs are not finite after {self.choice.steps} steps")
        return logits.softmax(-1)

    def save(self, folder: Path, about: dict[str, Any]) -> Path:
        """Adapted weights in safetensors, and beside them what they are; ``about`` the trained model."""
        make_folder(folder)
        path = folder / "adapted.safetensors"
        with replacing(path) as temporary:
            content = {name: value.cpu().contiguous() for name, value in self.params.items()}
            temporary.write_bytes(serialise(content))
        write_json(
            folder / "adapted.json",
            {
                "classes": self.support.classes,
                "steps": self.choice.steps,
                "held_out_losses": list(self.choice.losses),
                "support_images": len(self.support.labels),
                **about,
            },
        )
        return path


def adapt_to_images(
    meta: MetaLearner, support: ImageSupport, *, steps: int | None = None, rate_multiplier: float = 1.0
) -> AdaptedModel:
    """Adapt to a support set in ``steps`` inner steps; None chooses the number by cross-validation."""
    if not 0 < rate_multiplier < float("inf"):
        raise FirststepError(f"rate_multiplier must be a positive number, not {rate_multiplier}")
    if steps is not None and steps < 0:
        raise FirststepError(f"steps must not be negative, it is {steps}")
    learner = meta.for_classes(len(support.classes)).scaled(rate_multiplier)
    support = replace(support, images=body_features(meta.network, support.images))
    choice = StepChoice(steps or 0, (), 0)
    if steps is None:
        try:
            choice = learner.choose_steps(support.images, support.labels)
        except ValueError as error:
            raise FirststepError(
                f"cannot choose the number of steps: {error}; are the weights damaged?"
            ) from None
    params = learner.adapted_params(support.images, support.labels, steps=choice.steps)
    broken = next((name for name, value in params.items() if not bool(value.isfinite().all())), None)
    if broken is not None:
        raise FirststepError(
            f"{broken} is not finite after {choice.steps} steps: the weights are damaged, or the steps are "
            f"too long (rate_multiplier {rate_multiplier:g})"
        )
    return AdaptedModel(learner, support, params, choice)
