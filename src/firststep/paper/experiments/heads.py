"""How the classifier starts, with and without the conditioning loss, on glyphs; not in the paper."""

from __future__ import annotations

from firststep.network import HEADS
from firststep.paper.experiment import Experiment, Row, protocol, within


def heads_glyphs() -> Experiment:
    """Not in the paper: a row per class, shared and zero head, with and without the loss, on glyphs"""
    rows = []
    for head in HEADS:
        for conditioned in (False, True):
            rows.append(
                Row(
                    label=f"{head} + conditioning" if conditioned else head,
                    config=protocol("glyphs", "conv4", head=head, conditioned=conditioned),
                    tests=(within(),),
                    over=head if conditioned else None,
                )
            )
    for head in ("per-class", "zero"):
        rows.append(
            Row(
                label=f"{head}, gauss-newton",
                config=protocol("glyphs", "conv4", head=head, method="gauss-newton", conditioned=False),
                tests=(within(),),
                over=head,
            )
        )
    return Experiment(
        name="heads-glyphs",
        title="Heads on glyphs, 5-way 5-shot, Conv4",
        rows=tuple(rows),
        shows=("parameters",),
        note="All with the same budget and episodes. In exact arithmetic the shared and the zero head are "
        "the same learner; the Gauss-Newton step of the classifier is what perfect conditioning would give.",
    )
