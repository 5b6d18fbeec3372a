"""The paper's comparison with preconditioning methods: 5-way 5-shot miniImageNet, with parameter counts."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, kw_only=True)
class PublishedMethod:
    """A row of the paper's table."""

    method: str
    """As ``--method`` names it; ``conditioned`` is the paper's own, MAML with the conditioning loss."""
    backbone: str
    filters: int
    accuracy: float
    """In per cent, after five inner steps."""
    ci95: float
    """95 % half-width of it."""
    total_parameters: int
    backbone_parameters: int


def published_methods() -> list[PublishedMethod]:
    """All rows, in the paper's order."""
    text = files("firststep.paper").joinpath("preconditioners.csv").read_text(encoding="utf-8")
    return [
        PublishedMethod(
            method=row["method"],
            backbone=row["backbone"].lower(),
            filters=int(row["filters"]),
            accuracy=float(row["accuracy"]),
            ci95=float(row["ci95"]),
            total_parameters=int(row["total_parameters"]),
            backbone_parameters=int(row["backbone_parameters"]),
        )
        for row in csv.DictReader(text.splitlines())
    ]
