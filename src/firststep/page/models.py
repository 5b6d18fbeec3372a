"""The models of a page: loaded once, described for the browser, copied per worker thread."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from firststep.backbones import frozen_body
from firststep.data import DATASETS, Preprocessing
from firststep.deployment import EXPORT_ENDINGS
from firststep.errors import FirststepError, unknown
from firststep.meta_learner import MetaLearner
from firststep.network import FEWEST_CLASSES
from firststep.page.few_shot import FeatureMemory
from firststep.page.messages import one_line
from firststep.page.pictures import distinct, sees
from firststep.training import BUILTIN, TrainConfig, TrainedModel, load_trained

LABELS = {f"{BUILTIN}photos": "Photo classifier", f"{BUILTIN}photos-small": "Small photo classifier"}
"""Names of models that are meant for use; other models are named after their method."""


@dataclass
class PageModel:
    """A model of the page. Adaptation leaves it unchanged but runs inside its modules."""

    name: str
    trained: TrainedModel
    features: FeatureMemory = field(default_factory=FeatureMemory, repr=False)
    _copies: dict[int, MetaLearner] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def config(self) -> TrainConfig:
        return self.trained.config

    @property
    def preprocessing(self) -> Preprocessing:
        return self.trained.preprocessing

    @property
    def has_fixed_features(self) -> bool:
        """Whether the page adapts it as ``firststep adapt`` does, by probes and without inner steps."""
        return frozen_body(self.trained.meta.network) is not None

    @property
    def most_classes(self) -> int | None:
        """Return the largest number of classes, or None if there is no limit."""
        return self.trained.meta.num_classes if self.config.head == "per-class" else None

    @property
    def rate(self) -> float | None:
        """Return α if one number is the rate of all parameters, as in gradient descent; otherwise None."""
        update = self.trained.meta.rule.update
        rate = update.keywords.get("rate") if isinstance(update, partial) else None
        return rate if not self.trained.meta.rule_params else None

    @property
    def can_draw_episodes(self) -> bool:
        """Return whether the run knows where its data is; glyphs are embedded."""
        return DATASETS[self.config.data].generated is not None or self.config.data_path is not None

    def learner(self, place: int) -> MetaLearner:
        """Return the copy of one worker: two threads in one module would see each other's parameters."""
        with self._lock:
            if place not in self._copies:
                meta = self.trained.meta
                body = frozen_body(meta.network)  # shared: it never changes, and it is most of the network
                self._copies[place] = copy.deepcopy(meta, {} if body is None else {id(body): body})
            return self._copies[place]

    def describe(self) -> dict[str, Any]:
        config, preprocessing = self.config, self.preprocessing
        return {
            "name": self.name,
            "label": LABELS.get(self.name, config.describe()),
            "sees": sees(preprocessing),
            "image_size": preprocessing.image_size,
            "channels": preprocessing.channels,
            "ink": preprocessing.ink,
            "takes_steps": not self.has_fixed_features,
            "photographs": preprocessing.channels == 3,
            "least_classes": FEWEST_CLASSES,
            "most_classes": self.most_classes,
            "trained": {
                "method": config.method,
                "head": config.head,
                "conditioning": config.conditioning if config.conditioning_loss is not None else "none",
                "steps": config.steps,
                "rate": self.rate,
                "ways": config.ways,
                "shots": config.shots,
                "data": config.data,
            },
            "can_draw_episodes": self.can_draw_episodes,
            "exports": [ending.removeprefix(".") for ending in EXPORT_ENDINGS],
            "error": None,
        }


@dataclass(frozen=True)
class Models:
    ready: dict[str, PageModel]
    failed: dict[str, str]
    """Name → reason why it could not be loaded."""
    order: tuple[str, ...]

    def get(self, name: str) -> PageModel:
        if name in self.failed:
            raise FirststepError(f"{name} could not be loaded: {self.failed[name]}")
        if name not in self.ready:
            raise unknown("model", name, self.ready)
        return self.ready[name]

    def preprocessings(self) -> dict[str, Preprocessing]:
        return distinct(model.preprocessing for model in self.ready.values())

    def describe(self) -> list[dict[str, Any]]:
        return [
            self.ready[name].describe()
            if name in self.ready
            else {"name": name, "label": name, "error": self.failed[name]}
            for name in self.order
        ]


def load_models(wheres: Sequence[str], device: str | None = None) -> Models:
    """Load run folders and ``builtin:NAME``; note those that fail and serve the others."""
    ready: dict[str, PageModel] = {}
    failed: dict[str, str] = {}
    order = _names(wheres)
    for where, name in zip(wheres, order, strict=True):
        try:
            ready[name] = PageModel(name, _loaded(where, device))
        except Exception as error:  # a user's own network may raise anything
            failed[name] = one_line(error, [where, str(Path(where).absolute())])
    return Models(ready, failed, tuple(order))


def _loaded(where: str, device: str | None) -> TrainedModel:
    trained = load_trained(where, device=device)
    meta, recipe = trained.meta, trained.preprocessing
    # The first pass detects random layers by drawing random numbers; do it before other threads start.
    images = torch.zeros(2, recipe.channels, recipe.image_size, recipe.image_size, device=meta.device)
    meta.functional.observe(meta.functional.params(), images)
    return trained


def _names(wheres: Iterable[str]) -> list[str]:
    """Return the names as given, folders by their last part, numbered where two are equal."""
    names: list[str] = []
    for where in wheres:
        name = where if where.startswith(BUILTIN) else Path(where).absolute().name or "run"
        count = sum(other == name or other.startswith(f"{name} (") for other in names)
        names.append(f"{name} ({count + 1})" if count else name)
    return names
