"""Every dataset with every network: Table 4 with its supplement, and Figure 1."""

from __future__ import annotations

import pandas as pd

from firststep.paper.experiment import Experiment, beyond, published_cells, twins, within
from firststep.paper.numbers import published


def _label(dataset: str, backbone: str, shots: int) -> str:
    return f"{dataset} {backbone} {shots}-shot"


def table4() -> Experiment:
    """Table 4 and supplement: 5 datasets x 4 networks x 2 shots x 2 methods, to 100 steps"""
    depths, further = published("depths"), published("beyond_horizon")
    numbers = pd.concat([depths, further[further["step"] > depths["step"].max()]], ignore_index=True)
    models = depths[["dataset", "backbone", "shots"]].drop_duplicates().itertuples(index=False)
    rows = [
        row
        for dataset, backbone, shots in models
        for row in twins(
            _label(dataset, backbone, shots), (within(), beyond()), dataset, backbone, shots=int(shots)
        )
    ]
    return Experiment(
        name="table4",
        title="Table 4 and supplement: datasets and networks, 5-way, to 100 steps",
        rows=tuple(rows),
        paper=published_cells(
            numbers, lambda r: f"{_label(r['dataset'], r['backbone'], r['shots'])} {r['method']}"
        ),
        compares_datasets=True,
    )


def figure1() -> Experiment:
    """Figure 1: descent at high and low condition number; accuracy after 1 and 2 steps by network"""
    depths = published("depths")
    shown = depths[(depths["dataset"] == "mini-imagenet") & (depths["shots"] == 5)]
    rows = [
        row
        for backbone in shown["backbone"].unique().tolist()
        for row in twins(backbone, (within(),), "mini-imagenet", backbone)
    ]
    return Experiment(
        name="figure1",
        title="Figure 1: the first steps by network, 5-way 5-shot",
        rows=tuple(rows),
        paper=published_cells(shown, lambda r: f"{r['backbone']} {r['method']}"),
        figure="figure1",
    )
