"""Table 1: MAML re-implemented, beside what its authors reported."""

from __future__ import annotations

import pandas as pd

from firststep.paper.experiment import Experiment, Row, protocol, published_cells, within
from firststep.paper.numbers import published


def table1() -> Experiment:
    """Table 1: the MAML baseline, 5-way 1-shot and 5-shot"""
    numbers = published("baseline")
    facts = {"dataset": "mini-imagenet", "backbone": "conv4", "method": "maml", "step": 5}
    printed = []
    for whose, label in (("reimplemented", "{}-shot"), ("reported", "{}-shot, as Finn et al. report it")):
        cells = numbers[["shots", f"{whose}_accuracy", f"{whose}_ci95"]].set_axis(
            ["shots", "accuracy", "ci95"], axis=1
        )
        # Finn et al. used 32 filters.
        filters = 64 if whose == "reimplemented" else 32
        printed.append(
            published_cells(cells, lambda r, text=label: text.format(r["shots"]), filters=filters, **facts)
        )
    return Experiment(
        name="table1",
        title="Table 1: the MAML baseline, Conv4, 5-way",
        rows=tuple(
            Row(
                label=f"{shots}-shot",
                config=protocol("mini-imagenet", "conv4", conditioned=False, shots=shots),
                tests=(within(),),
            )
            for shots in numbers["shots"].tolist()
        ),
        paper=pd.concat(printed, ignore_index=True),
    )
