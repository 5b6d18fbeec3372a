"""Every method with and without the conditioning loss, on glyphs; not in the paper."""

from __future__ import annotations

from firststep.methods import METHODS
from firststep.paper.experiment import Experiment, Row, protocol, within


def rivals_glyphs() -> Experiment:
    """Not in the paper: every method with and without the conditioning loss on glyphs, 5-way 1-shot"""
    rows = []
    for method in METHODS:
        for conditioned in (False, True):
            rows.append(
                Row(
                    label=f"{method} + conditioning" if conditioned else method,
                    config=protocol("glyphs", "conv4", shots=1, method=method, conditioned=conditioned),
                    tests=(within(),),
                    over=method if conditioned else None,
                )
            )
    return Experiment(
        name="rivals-glyphs",
        title="The rivals on glyphs, 5-way 1-shot, Conv4",
        rows=tuple(rows),
        shows=("parameters",),
        note="Every method with the same budget and episodes; ModGrad with its authors' own inner rate.",
    )
