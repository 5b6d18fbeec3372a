"""The paper's comparison with preconditioning methods: 5-way 5-shot miniImageNet, with parameter counts."""

from __future__ import annotations

from dataclasses import dataclass

from firststep.paper.numbers import published


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
    return [PublishedMethod(**row) for row in published("preconditioners").to_dict("records")]
