"""Predicted classes of images as a table, CSV or JSON."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firststep.cli.terminal import console, render
from firststep.utils import Table


@dataclass(frozen=True)
class Predictions:
    classes: list[str]
    files: list[Path]
    probabilities: list[list[float]]
    """Of each class, for each file."""
    labels: list[str] | None = None
    """The true classes, where they are known."""

    def numbers(self) -> list[int]:
        """The place of each predicted class."""
        return [max(range(len(row)), key=row.__getitem__) for row in self.probabilities]

    def show(self, format: str) -> None:
        """On standard output."""
        if format == "json":
            print(json.dumps(self._rows(), indent=2, ensure_ascii=False))
        elif format == "csv":
            table = csv.writer(sys.stdout, lineterminator="\n")
            known = ["label"] if self.labels is not None else []
            table.writerow(["image", *known, "class", "probability", *self.classes])
            for row in self._rows():
                true = [row["label"]] if self.labels is not None else []
                table.writerow([row["image"], *true, row["class"], row["probability"], *row["all"].values()])
        else:
            console().print(render(self._table()))

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        labels: Sequence[str | None] = self.labels or [None] * len(self.files)
        for file, row, best, label in zip(
            self.files, self.probabilities, self.numbers(), labels, strict=True
        ):
            rows.append(
                {
                    "image": str(file),
                    **({} if label is None else {"label": label}),
                    "class": self.classes[best],
                    "probability": row[best],
                    "all": dict(zip(self.classes, row, strict=True)),
                }
            )
        return rows

    def _table(self) -> Table:
        known = self.labels is not None
        columns = ["image", *(["label"] if known else []), "class", "probability"]
        table = Table(columns, left_aligned=len(columns) - 1)
        for row in self._rows():
            label = [row["label"]] if known else []
            table.add_row(row["image"], *label, row["class"], f"{100 * row['probability']:.1f} %")
        return table
