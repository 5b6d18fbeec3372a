"""Episodes: N-way K-shot tasks that are a pure function of their number and the settings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from firststep.data.augmentation import Augmentation
from firststep.data.dataset import Split
from firststep.data.draws import Draws
from firststep.data.features import FeatureSplit
from firststep.errors import FirststepError

VERSION = 1
"""Part of every episode's draws; raised if the sampling ever changes."""


class Episode(NamedTuple):
    """One task. Images are normalised float32 [n, C, H, W], or features [n, d] of a frozen network; labels
    int64 0..ways-1, class after class.

    Examples:
        >>> episode = episodes[0]
        >>> episode.support_x.shape, episode.query_x.dtype, episode.support_y.tolist()
        ((10, 1, 16, 16), dtype('float32'), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    """

    support_x: np.ndarray
    support_y: np.ndarray
    query_x: np.ndarray
    query_y: np.ndarray


class EpisodeRows(NamedTuple):
    """Which classes and which rows of ``split.images`` an episode uses."""

    classes: list[int]
    support: np.ndarray
    """rows [ways, shots]"""
    query: np.ndarray
    """rows [ways, queries]"""


class Episodes:
    """``episodes[i]`` is the i-th task, the same in any process, order and number of times.

    It depends on the dataset's name, the split, ways, shots, queries, the seed and i, and on nothing
    else; no global random state is read or changed. There is no last one: take as many as needed.

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
                wanted = f"{shots} shots + {queries} queries need {need}"
                raise FirststepError(f"{where}: class {name!r} has {count} images, but {wanted}")
        if augment and isinstance(split, FeatureSplit):
            raise FirststepError(
                f"`augment` changes images, but of {where} a frozen network's features are used, which are "
                "computed once"
            )
        self.split, self.ways, self.shots, self.queries, self.seed = split, ways, shots, queries, seed
        self.augment = Augmentation() if augment is True else (augment or None)
        if self.augment is not None:
            _ = split.preprocessing  # refuses what is no image
        self._starts = np.array(split.starts())
        self._support_labels = np.repeat(np.arange(ways, dtype=np.int64), shots)
        self._query_labels = np.repeat(np.arange(ways, dtype=np.int64), queries)

    def _draws(self, purpose: str, index: int) -> Draws:
        s = self
        return Draws(
            purpose, VERSION, s.split.dataset, s.split.name, s.ways, s.shots, s.queries, s.seed, index
        )

    def rows(self, index: int) -> EpisodeRows:
        """Which images the episode consists of."""
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
