"""Every method, with the conditioning loss and with a shared head; not in the paper."""

from __future__ import annotations

import math

from firststep.paper.experiment import Experiment, Row, protocol, within
from firststep.paper.parameter_count import parameter_count

RIVALS = (
    *(
        "maml",
        "fomaml",
        "anil",
        "boil",
        "meta-sgd",
        "meta-curvature",
        "modgrad",
        "warp-maml",
        "gap",
        "maml++",
    ),
    "gauss-newton",
)
"""Methods of few-shot classification; inner optimisers are not among them."""


def rivals() -> Experiment:
    """Not in the paper: every method plain, with the conditioning loss, and with a shared head"""
    rows = []
    for method in RIVALS:
        plain, conditioned, shared = (
            protocol("cifar-fs", "conv4", method=method, head=head, conditioned=with_loss)
            for head, with_loss in (("per-class", False), ("per-class", True), ("shared", False))
        )
        rows.append(Row(label=method, config=plain, tests=(within(),)))
        rows.append(Row(label=f"{method} + conditioning", config=conditioned, tests=(within(),), over=method))
        # Methods that never move the classifier cannot use a shared head.
        if not math.isnan(parameter_count(shared)):
            rows.append(Row(label=f"{method}, shared head", config=shared, tests=(within(),), over=method))
    return Experiment(
        name="rivals",
        title="The rivals: every method, with the loss, and with a shared head, Conv4, 5-way 5-shot",
        rows=tuple(rows),
        shows=("parameters",),
        figure="rivals",
        note="Every method with the same budget and episodes; ModGrad with its authors' own inner rate, "
        "Gauss-Newton with the whole step. BOIL and ModGrad never move the classifier: they have no shared "
        "head.",
    )
