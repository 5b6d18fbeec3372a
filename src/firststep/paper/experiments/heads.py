"""How the classifier starts, with and without the conditioning loss; not in the paper."""

from __future__ import annotations

from firststep.network import HEADS
from firststep.paper.experiment import Experiment, Row, named_test, protocol

STEPS = tuple(range(11))


def heads() -> Experiment:
    """Not in the paper: a row per class, shared and zero head, with and without the loss; Gauss-Newton"""
    tests = (named_test(steps=STEPS),)
    rows = []
    for head in HEADS:
        for conditioned in (False, True):
            rows.append(
                Row(
                    label=f"{head} + conditioning" if conditioned else head,
                    config=protocol("cifar-fs", "conv4", head=head, conditioned=conditioned),
                    tests=tests,
                    over=None if head == HEADS[0] and not conditioned else HEADS[0],
                )
            )
    for head in ("per-class", "shared"):
        rows.append(
            Row(
                label=f"{head}, gauss-newton",
                config=protocol("cifar-fs", "conv4", head=head, method="gauss-newton", conditioned=False),
                tests=tests,
                over=HEADS[0],
            )
        )
    return Experiment(
        name="heads",
        title="Heads: how the classifier starts, Conv4, 5-way 5-shot",
        rows=tuple(rows),
        shows=("class_offset", "largest_share", "parameters"),
        note="All with the same budget and episodes; gains are over MAML as published, `per-class`. "
        "`class offset`: length of the mean query logit before the first step; `largest class %`: the share "
        "of queries that fall into one class there. In exact arithmetic the shared and the zero head are the "
        "same learner. A Gauss-Newton step of the classifier, always taken whole (rate 1), is what perfect "
        "conditioning would give.",
    )
