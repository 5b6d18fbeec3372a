"""Draw random episodes of a model's dataset, in the form in which the browser keeps examples."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from firststep.data import Dataset, Episodes, Preprocessing
from firststep.errors import FirststepError
from firststep.page.limits import Limits
from firststep.page.models import PageModel
from firststep.page.pictures import reseen
from firststep.page.requests import EpisodeRequest
from firststep.training import open_images

LARGEST_SEED = 2**53 - 1
"""Largest integer that JavaScript represents exactly."""


class EpisodeSource:
    """A source of episodes; datasets are opened at their first use, which may build their cache."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: dict[str, Dataset] = {}

    def draw(
        self, model: PageModel, request: EpisodeRequest, by: Mapping[str, Preprocessing], limits: Limits
    ) -> dict[str, Any]:
        """Draw an episode of test classes; ``by`` holds the preprocessings of all models of the page."""
        _check(model, request, limits)
        split = self._data(model).split("test")
        episodes = Episodes(
            split, ways=request.ways, shots=request.shots, queries=request.queries, seed=request.seed
        )
        rows = episodes.rows(0)

        def pictures(numbers: Any) -> list[dict[str, str]]:
            return [reseen(pixels, by, split.preprocessing) for pixels in split.pixels(numbers)]

        return {
            "classes": [
                {"name": split.classes[number], "examples": pictures(rows.support[place])}
                for place, number in enumerate(rows.classes)
            ],
            "queries": [
                {"image": image, "label": place}
                for place in range(request.ways)
                for image in pictures(rows.query[place])
            ],
            "seed": request.seed,
            "data": model.config.data,
        }

    def _data(self, model: PageModel) -> Dataset:
        with self._lock:
            if model.name not in self._opened:
                self._opened[model.name] = open_images(model.config)
            return self._opened[model.name]


def _check(model: PageModel, request: EpisodeRequest, limits: Limits) -> None:
    if not model.can_draw_episodes:
        raise FirststepError(f"{model.name} was trained on {model.config.data}, which is not at hand here")
    most = min(limits.classes, model.most_classes or limits.classes)
    if not 2 <= request.ways <= most:
        raise FirststepError(f"{model.name} takes 2 to {most} classes, not {request.ways}")
    for what, number, bound in (
        ("examples", request.shots, limits.examples),
        ("queries", request.queries, limits.queries),
    ):
        if number < 1 or number * request.ways > bound:
            raise FirststepError(
                f"{number} {what} of each of {request.ways} classes: 1 to {bound} in all are possible"
            )
    if not 0 <= request.seed <= LARGEST_SEED:
        raise FirststepError(f"the seed must be 0..{LARGEST_SEED}")
