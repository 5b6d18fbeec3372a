"""Adapting a trained model to somebody's own pictures, and classifying others with it.

Batch norm normalises by the batch it sees, so it matters what else is in the batch. A query picture is
classified in a batch with the support pictures and no other query: its answer depends on the support set and
on itself alone. ``transductive=True`` is the papers' protocol instead: all query pictures form one batch, and
each changes the others' answers a little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from firststep.adaptation import adapt
from firststep.data import Preprocessing
from firststep.data.preprocessing import decode
from firststep.errors import FirststepError
from firststep.evaluation.steps import LONGEST_AUTO, StepChoice, choose_for
from firststep.evaluation.trained import Trained
from firststep.network import Params
from firststep.utils.files import replacing, write_json

PICTURE_ENDINGS = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}
)


@dataclass(frozen=True)
class Support:
    """Labelled pictures: one folder a class."""

    classes: list[str]
    images: Tensor
    labels: Tensor


def picture_files(path: Path) -> list[Path]:
    """A picture, or all pictures directly in a folder, sorted by name."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FirststepError(f"{path} does not exist")
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in PICTURE_ENDINGS)
    if not files:
        raise FirststepError(f"{path} has no pictures ({', '.join(sorted(PICTURE_ENDINGS))})")
    return files


def load_pictures(files: Sequence[Path], preprocessing: Preprocessing, device: torch.device) -> Tensor:
    pixels = np.stack([decode(file, str(file), preprocessing) for file in files])
    return torch.from_numpy(preprocessing.normalise(pixels)).to(device)


def load_support(folder: Path, trained: Trained) -> Support:
    """The support set in ``folder``: a subfolder a class, named by it, with a few pictures each."""
    if not folder.is_dir():
        raise FirststepError(f"--support {folder} is not a folder; it must hold one subfolder for each class")
    folders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    ways = trained.config.ways
    if len(folders) != ways:
        found = f": {', '.join(path.name for path in folders)}" if folders else ""
        raise FirststepError(
            f"{folder} has {len(folders)} class folders{found}; the model tells {ways} classes apart, "
            f"so there must be {ways}"
        )
    files = [picture_files(path) for path in folders]
    images = [load_pictures(group, trained.preprocessing, trained.setup.device) for group in files]
    labels = torch.arange(ways).repeat_interleave(torch.tensor([len(group) for group in files]))
    return Support([path.name for path in folders], torch.cat(images), labels.to(trained.setup.device))


@dataclass(frozen=True)
class Adapted:
    """A model adapted to a support set."""

    trained: Trained
    support: Support
    params: Params
    choice: StepChoice
    """How many steps were taken, and why."""

    @torch.no_grad()
    def probabilities(self, queries: Tensor, transductive: bool = False) -> Tensor:
        """[queries, classes], each row summing to 1."""
        model = self.trained.setup.model
        if transductive:
            return model(self.params, queries).logits.softmax(-1)
        answers = [
            model(self.params, torch.cat([self.support.images, query[None]])).logits[-1] for query in queries
        ]
        return torch.stack(answers).softmax(-1)

    def save(self, folder: Path) -> Path:
        """Adapted weights in safetensors, and beside them what they are."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "adapted.safetensors"
        with replacing(path) as temporary:
            save_file({name: value.cpu().contiguous() for name, value in self.params.items()}, temporary)
        write_json(
            folder / "adapted.json",
            {
                "classes": self.support.classes,
                "steps": self.choice.steps,
                "held_out_losses": list(self.choice.losses),
                "support_pictures": len(self.support.labels),
                "run": self.trained.run.folder.name,
                "config": self.trained.config.to_json(),
                "preprocessing": self.trained.preprocessing.describe(),
            },
        )
        return path


def adapt_to(
    trained: Trained,
    support: Support,
    *,
    steps: int | None = None,
    rate_multiplier: float = 1.0,
    longest: int = LONGEST_AUTO,
) -> Adapted:
    """Adapt to a support set in ``steps`` inner steps; None chooses the number by cross-validation."""
    rule = trained.rule(rate_multiplier)
    if steps is None:
        choice = choose_for(trained, rule, support.images, support.labels, longest)
    elif steps < 0:
        raise FirststepError(f"--steps must not be negative, it is {steps}")
    else:
        choice = StepChoice(steps, (), 0)
    trajectory = adapt(
        trained.setup.model,
        rule,
        support.images,
        support.labels,
        steps=choice.steps,
        params=trained.params,
        own=trained.own,
    )
    return Adapted(trained, support, trajectory.adapted, choice)
