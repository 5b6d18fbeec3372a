"""More ways and more shots: the supplement's table, and Figure 4."""

from __future__ import annotations

from dataclasses import replace

from firststep.paper.experiment import Experiment, published_cells, twins, within
from firststep.paper.numbers import published


def ways_and_shots() -> Experiment:
    """Supplement: 5-way {1, 5, 10, 15, 20}-shot and {5, 10, 15}-way 5-shot"""
    numbers = published("ways_and_shots")
    tasks = numbers[["ways", "shots"]].drop_duplicates().itertuples(index=False)
    rows = [
        row
        for ways, shots in tasks
        for row in twins(
            f"{ways}-way {shots}-shot",
            (within(),),
            "mini-imagenet",
            "conv6",
            ways=int(ways),
            shots=int(shots),
        )
    ]
    return Experiment(
        name="ways-and-shots",
        title="More ways and more shots, Conv6",
        rows=tuple(rows),
        paper=published_cells(numbers, lambda r: f"{r['ways']}-way {r['shots']}-shot {r['method']}"),
    )


def figure4() -> Experiment:
    """Figure 4: accuracy over steps by ways and shots"""
    return replace(
        ways_and_shots(),
        name="figure4",
        title="Figure 4: ways and shots, Conv6",
        figure="figure4",
    )
