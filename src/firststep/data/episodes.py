"""Episodes: N-way K-shot tasks, each a pure function of its number and the settings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from firststep.data.augmentation import Augmentation
from firststep.data.dataset import Split
from firststep.data.draws import Draws
from firststep.data.features import FeatureSplit
from firststep.errors import FirststepError

VERSION = 1
"""Part of the identity of every episode's draws; raise it if the sampling changes."""


class Episode(NamedTuple):
    """One task: normalised images, float32 [n, C, H, W], or features [n, d] of a frozen network, and labels.

    Labels are int64 in 0..ways-1, class after class. Tasks of a task source have targets of its own.

    Examples:
        >>> episode = episodes[0]
        >>> episode.support_x.shape, episode.query_x.dtype, episode.support_y.tolist()
        ((10, 1, 16, 16), dtype('float32'), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    """

    support_x: Any
    support_y: Any
    query_x: Any
    query_y: Any


class EpisodeRows(NamedTuple):
    """The classes and the rows of ``split.images`` that an episode uses."""

    classes: list[int]
    support: np.ndarray
    """rows [ways, shots]"""
    query: np.ndarray
    """rows [ways, queries]"""


class Episodes:
    """An endless sequence of tasks: ``episodes[i]`` is the i-th, the same in any process and any order.

    A task depends on the dataset's name, the split, ways, shots, queries, the seed and i, and on nothing
    else. No global random state is read or changed.

    Examples:
        >>> episodes = Episodes(dataset.split("test"), ways=5, shots=2, queries=3, seed=0)
        >>> bool((episodes[7].query_x == episodes[7].query_x).all())
        True
    """

    def __init__(
        self,
        split: Split,
        *,
        ways: int = 5,
        shots: int = 5,
        queries: int = 16,
        seed: int = 0,
        augment: Augmentation | bool = False,
    ) -> None:
        for option, value, least in (("ways", ways, 2), ("shots", shots, 1), ("queries", queries, 1)):
            if value < least:
                raise FirststepError(f"{option} must be at least {least}, not {value}")
        where = f"{split.dataset} {split.name}"
        if ways > len(split.classes):
            raise FirststepError(f"{where} has {len(split.classes)} classes, too few for {ways}-way episodes")
        need = shots + queries
        for name, count in zip(split.classes, split.counts, strict=True):
            if count < need:
                needs = f"{shots} shots + {queries} queries need {need}"
                raise FirststepError(f"{where}: class {name!r} has {count} images, but {needs}")
        if augment and isinstance(split, FeatureSplit):
            raise FirststepError(
                f"`augment` changes images, but {where} holds features of a frozen network, computed "
                "once; leave it out"
            )
        self.split, self.ways, self.shots, self.queries, self.seed = split, ways, shots, queries, seed
        self.augment = Augmentation() if augment is True else (augment or None)
        if self.augment is not None:
            _ = split.preprocessing  # raises if the samples are not images
        self._starts = np.array(split.starts())
        self._support_labels = np.repeat(np.arange(ways, dtype=np.int64), shots)
        self._query_labels = np.repeat(np.arange(ways, dtype=np.int64), queries)

    def _draws(self, purpose: str, index: int) -> Draws:
        s = self
        return Draws(
            purpose, VERSION, s.split.dataset, s.split.name, s.ways, s.shots, s.queries, s.seed, index
        )

    def rows(self, index: int) -> EpisodeRows:
        """Return the images of the episode."""
        if index < 0:
            raise IndexError(f"episodes are numbered from 0, not {index}")
        draws = self._draws("episode", index)
        classes = draws.distinct(self.ways, len(self.split.classes))
        need = self.shots + self.queries
        rows = np.array([draws.distinct(need, self.split.counts[c]) for c in classes])
        rows += self._starts[classes, None]
        return EpisodeRows(classes, rows[:, : self.shots], rows[:, self.shots :])

    def __getitem__(self, index: int) -> Episode:
        rows = self.rows(index)
        parts = (rows.support.ravel(), rows.query.ravel())
        if self.augment is None:
            support, query = (self.split.inputs(part) for part in parts)
        else:
            draws = self._draws("augmentation", index)
            normalise = self.split.normalise
            support, query = (normalise(self.augment(self.split.pixels(part), draws)) for part in parts)
        return Episode(support, self._support_labels.copy(), query, self._query_labels.copy())
