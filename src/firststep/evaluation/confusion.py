"""Confusion matrices: which classes are predicted as which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firststep.utils import MISSING, Table

WORST = 3
"""Number of wrong classes named per row of the table."""


@dataclass(frozen=True)
class Confusion:
    """Counts of true and predicted classes.

    Examples:
        >>> from firststep.evaluation import Confusion
        >>> confusion = Confusion.of(["cat", "dog"], expected=[0, 0, 1, 1], predicted=[0, 1, 1, 1])
        >>> confusion.accuracy, confusion.counts.tolist()
        (0.75, [[1, 1], [0, 2]])
    """

    classes: list[str]
    counts: np.ndarray
    """Counts [true class, predicted class]."""

    @staticmethod
    def of(classes: Sequence[str], expected: Sequence[int], predicted: Sequence[int]) -> Confusion:
        counts = np.zeros((len(classes), len(classes)), dtype=int)
        np.add.at(counts, (np.asarray(expected, int), np.asarray(predicted, int)), 1)
        return Confusion(list(classes), counts)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    @property
    def right(self) -> int:
        return int(self.counts.trace())

    @property
    def accuracy(self) -> float:
        return self.right / self.total

    def table(self) -> Table:
        """Return one row per true class, worst first: its most frequent confusions and its accuracy."""
        totals, right = self.counts.sum(1), self.counts.diagonal()
        table = Table(["true class", "most often taken for", "images", "right"], left_aligned=2)
        for number in sorted(totals.nonzero()[0], key=lambda each: right[each] / totals[each]):
            share = f"{100 * right[number] / totals[number]:.1f} %"
            table.add_row(self.classes[number], self._worst(number), str(totals[number]), share)
        return table

    def _worst(self, number: int) -> str:
        """Name the most frequent wrong predictions of a class, with counts."""
        others = [place for place in self.counts[number].nonzero()[0] if place != number]
        others.sort(key=lambda place: -self.counts[number, place])
        named = [f"{self.classes[place]} ({self.counts[number, place]})" for place in others[:WORST]]
        more = [f"{len(others) - WORST} more"] if len(others) > WORST else []
        return ", ".join([*named, *more]) or MISSING
