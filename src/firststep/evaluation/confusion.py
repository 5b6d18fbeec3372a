"""Which classes are taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firststep.utils import MISSING, Cell, Table


@dataclass(frozen=True)
class Confusion:
    """How often each class was taken for each.

    Examples:
        >>> from firststep.evaluation import Confusion
        >>> confusion = Confusion.of(["cat", "dog"], expected=[0, 0, 1, 1], predicted=[0, 1, 1, 1])
        >>> confusion.accuracy, confusion.counts.tolist()
        (0.75, [[1, 1], [0, 2]])
    """

    classes: list[str]
    counts: np.ndarray
    """[true class, predicted class]"""

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
        """A row for each true class: how its images were classified, and the part that is right."""
        table = Table(["true class", *self.classes, "right"])
        for number, (name, row) in enumerate(zip(self.classes, self.counts.tolist(), strict=True)):
            cells = [Cell(str(count), bold=place == number) for place, count in enumerate(row)]
            share = f"{100 * row[number] / sum(row):.1f} %" if sum(row) else MISSING
            table.add_row(name, *cells, share)
        return table
