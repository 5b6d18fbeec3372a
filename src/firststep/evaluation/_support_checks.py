"""Say what is wrong with a support set: doubtful labels, repeated images, confused classes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from firststep.evaluation._promise import Promise
from firststep.evaluation.adapted_model import AdaptedModel
from firststep.utils import counted

_THUMBNAIL = 16
_ALIKE = 3.0
"""Largest mean difference of thumbnails, in grey levels of 255, of two files that show one image."""
MOST_SUSPECTS = 5


@dataclass(frozen=True)
class Suspect:
    """A support image that the others contradict."""

    image: str
    label: str
    looks_like: str
    probability: float
    """Probability of that other class when the image is held out."""


@dataclass(frozen=True)
class Confused:
    """A class whose held-out images were taken for another one."""

    label: str
    taken_for: str
    images: int
    of: int


@dataclass(frozen=True)
class Pair:
    """Two files with the same image."""

    first: str
    second: str
    identical: bool
    """Whether all pixels agree, not only the thumbnails."""


@dataclass(frozen=True)
class SupportReport:
    """Result of an adaptation for people: accuracy to expect, confusions, images to check, what to add."""

    images: dict[str, int]
    """Class → number of support images."""
    classifier: str
    accuracy: Promise | None
    """None where nothing could be held out."""
    confused: list[Confused]
    check: list[Suspect]
    repeated: list[Pair]
    add_next: list[str]


def support_report(adapted: AdaptedModel, files: Sequence[Path], pixels: np.ndarray) -> SupportReport:
    """Examine the support set that a model was adapted to.

    Args:
        adapted: adapted model.
        files: support images, in the order of ``adapted.support``.
        pixels: their pixels, uint8 [n, H, W, C].
    """
    return examined(
        adapted.support.classes,
        adapted.support.labels.cpu(),
        [str(file) for file in files],
        classifier=adapted.classifier,
        accuracy=adapted.promise,
        held_out=_held_out(adapted),
        repeated=same_images(files, pixels),
    )


def examined(
    classes: Sequence[str],
    labels: Tensor,
    names: Sequence[str],
    *,
    classifier: str,
    accuracy: Promise | None,
    held_out: tuple[Tensor, Tensor, Tensor] | None,
    repeated: list[Pair],
    what: str = "image",
) -> SupportReport:
    """Examine a support set by its held-out predictions.

    Args:
        classes: their names.
        labels: class of each sample.
        names: of the samples.
        classifier: its name.
        accuracy: to expect.
        held_out: rows, labels and probabilities of the held-out samples.
        repeated: pairs of equal samples.
        what: what a sample is.
    """
    counts = labels.bincount(minlength=len(classes)).tolist()
    confused: list[Confused] = []
    suspects: list[Suspect] = []
    if held_out is not None:
        rows, true, probabilities = held_out
        confused = _confused(classes, true, probabilities.argmax(1))
        own = probabilities.gather(1, true[:, None])[:, 0]
        best, other = probabilities.max(1)
        for place in (own - best).argsort().tolist():
            if len(suspects) == MOST_SUSPECTS or best[place] < 0.5 or own[place] > best[place] / 4:
                break
            words = names[int(rows[place])], classes[int(true[place])], classes[int(other[place])]
            suspects.append(Suspect(*words, probability=float(best[place])))
    return SupportReport(
        images=dict(zip(classes, counts, strict=True)),
        classifier=classifier,
        accuracy=accuracy,
        confused=confused,
        check=suspects,
        repeated=repeated,
        add_next=_advice(classes, counts, confused, what),
    )


def _held_out(adapted: AdaptedModel) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return rows, labels and probabilities of the held-out samples."""
    if adapted.few_shot is not None:
        found = adapted.few_shot.held_out
        return None if found is None else (found.rows, found.labels, found.probabilities)
    validation = adapted.validation
    if validation is None:
        return None
    outputs = validation.log_probabilities[adapted.classifier].nan_to_num(-torch.inf)
    return torch.arange(len(outputs)), validation.labels, outputs.exp()


def _confused(classes: Sequence[str], labels: Tensor, predicted: Tensor) -> list[Confused]:
    """Return the confusions, most frequent first."""
    pairs = torch.stack([labels, predicted], 1)[labels != predicted]
    kinds, counts = torch.unique(pairs, dim=0, return_counts=True)
    totals = labels.bincount(minlength=len(classes)).tolist()
    found = [
        Confused(classes[true], classes[answer], count, totals[true])
        for (true, answer), count in zip(kinds.tolist(), counts.tolist(), strict=True)
    ]
    return sorted(found, key=lambda each: (-each.images, -each.images / each.of, each.label))


def _advice(
    classes: Sequence[str], counts: Sequence[int], confused: Sequence[Confused], what: str
) -> list[str]:
    single = [name for name, count in zip(classes, counts, strict=True) if count == 1]
    if len(single) == len(classes):
        return [
            f"a second {what} of each class: with one nothing can be held out, so no accuracy can be "
            "estimated"
        ]
    advice = [f"more {what}s of {name}: it has only one" for name in single[:2]]
    for each in confused:
        words = f"more {what}s of {each.label}: it is confused with {each.taken_for}"
        if len(advice) < 3 and not any(line.startswith(words.partition(":")[0] + ":") for line in advice):
            advice.append(words)
    if not advice and min(counts) < 5:
        advice.append(f"{counted(5 - min(counts), what)} of {classes[counts.index(min(counts))]}")
    return advice


def same_images(
    files: Sequence[Path],
    pixels: np.ndarray,
    others: Sequence[Path] | None = None,
    other_pixels: np.ndarray | None = None,
) -> list[Pair]:
    """Return pairs of files with the same image: among ``files``, or between them and ``others``."""
    digests, thumbnails = _prints(pixels)
    within = others is None or other_pixels is None
    asked_files = files if others is None or within else others
    asked_digests, asked = (digests, thumbnails) if other_pixels is None else _prints(other_pixels)
    found = []
    for number, thumbnail in enumerate(asked):
        alike = np.abs(thumbnails[: number if within else None] - thumbnail).mean(1) <= _ALIKE
        for place in np.flatnonzero(alike)[:1]:
            identical = digests[place] == asked_digests[number]
            found.append(Pair(str(files[place]), str(asked_files[number]), identical))
    return found


def _prints(pixels: np.ndarray) -> tuple[list[bytes], np.ndarray]:
    """Return digests and thumbnails [n, 16 · 16 · channels] of images."""
    digests = [hashlib.sha256(np.ascontiguousarray(image).tobytes()).digest() for image in pixels]
    size = (_THUMBNAIL, _THUMBNAIL)
    thumbnails = [
        np.asarray(Image.fromarray(image.squeeze()).resize(size, Image.Resampling.BOX), dtype=np.float32)
        for image in pixels
    ]
    return digests, np.stack(thumbnails).reshape(len(pixels), -1)
