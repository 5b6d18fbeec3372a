"""Adapt a network with fixed features as ``firststep adapt`` does: answers, expected accuracy, doubts."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from firststep.backbones import body_features
from firststep.data import Preprocessing
from firststep.evaluation import AdaptedModel, adapt_to_images
from firststep.evaluation._internal import NONE_LIMIT, logits_of, same_images, support_report
from firststep.meta_learner import MetaLearner
from firststep.page.adapting import Lesson, learner_for
from firststep.page.turns import check

REMEMBERED = 2000
"""Number of pictures whose features stay in memory: 10 MB at 1,280 features."""


class FeatureMemory:
    """Features of pictures by their digest, so that a new example costs one forward pass and not all."""

    def __init__(self) -> None:
        self._found: OrderedDict[bytes, Tensor] = OrderedDict()
        self._lock = threading.Lock()

    def computed(
        self, meta: MetaLearner, preprocessing: Preprocessing, pixels: np.ndarray, stop: threading.Event
    ) -> Generator[dict[str, Any], None, Tensor]:
        """Yield ``progress`` per picture that is new; return the features of all, [n, d]."""
        keys = [hashlib.sha256(image.tobytes()).digest() for image in pixels]
        with self._lock:
            found = {key: self._found[key] for key in keys if key in self._found}
        missing = {key: image for key, image in zip(keys, pixels, strict=True) if key not in found}
        for done, (key, image) in enumerate(missing.items(), 1):
            check(stop)
            normalised = torch.from_numpy(preprocessing.normalise(image[None])).to(meta.device)
            with torch.no_grad():
                found[key] = body_features(meta.network, normalised)[0]
            self._keep({key: found[key]})
            yield {"type": "progress", "done": done, "of": len(missing)}
        self._keep(found)
        return torch.stack([found[key] for key in keys])

    def _keep(self, features: dict[bytes, Tensor]) -> None:
        with self._lock:
            for key, value in features.items():
                self._found[key] = value
                self._found.move_to_end(key)
            while len(self._found) > REMEMBERED:
                self._found.popitem(last=False)


def report_events(
    meta: MetaLearner,
    preprocessing: Preprocessing,
    background: Tensor | None,
    memory: FeatureMemory,
    lesson: Lesson,
    stop: threading.Event,
) -> Iterator[dict[str, Any]]:
    """``progress`` while features are computed, then ``report``."""
    learner_for(meta, len(lesson.classes))
    pixels = np.concatenate([lesson.examples, lesson.queries])
    features = yield from memory.computed(meta, preprocessing, pixels, stop)
    support, queries = features.tensor_split([len(lesson.examples)])
    adapted = adapt_lesson(meta, background, lesson, support, preprocessing)
    yield {"type": "report", **_report(adapted, lesson), **_answers(adapted, queries)}


def adapt_lesson(
    meta: MetaLearner,
    background: Tensor | None,
    lesson: Lesson,
    features: Tensor | None,
    preprocessing: Preprocessing,
) -> AdaptedModel:
    """Adapt as the command does; ``features`` of the examples are computed if they are None."""
    support = lesson.support(meta, preprocessing)
    if features is not None:
        support = replace(support, features=features)
    return adapt_to_images(meta, support, classifier="auto", background=background)


@torch.no_grad()
def _answers(adapted: AdaptedModel, queries: Tensor) -> dict[str, Any]:
    classes = len(adapted.support.classes)
    has_none = adapted.head is not None and adapted.head.has_none
    # One by one, as the command asks: rounding depends on the batch size.
    rows = [logits_of(adapted.network, query[None])[0] for query in queries]
    return {
        "probabilities": [row[:classes].softmax(0).tolist() for row in rows],
        "none": [row[classes].item() for row in rows] if has_none else None,
        "none_limit": NONE_LIMIT if has_none else None,
    }


def _report(adapted: AdaptedModel, lesson: Lesson) -> dict[str, Any]:
    """Return the command's report; pictures are places among the examples or the queries."""
    places = [Path(str(number)) for number in range(len(lesson.examples))]
    found = support_report(adapted, places, lesson.examples)
    accuracy = found.accuracy
    asked = [Path(str(number)) for number in range(len(lesson.queries))]
    pairs = same_images(places, lesson.examples, asked, lesson.queries) if asked else []
    return {
        "accuracy": None
        if accuracy is None
        else {"expected": accuracy.accuracy, "interval": accuracy.interval, **asdict(accuracy)},
        "confused": [asdict(each) for each in found.confused],
        "check": [{**asdict(each), "image": int(each.image)} for each in found.check],
        "repeated": [[int(pair.first), int(pair.second)] for pair in found.repeated],
        "asked_again": [[int(pair.first), int(pair.second)] for pair in pairs],
        "add_next": found.add_next,
        "calibrated": adapted.is_calibrated,
    }
