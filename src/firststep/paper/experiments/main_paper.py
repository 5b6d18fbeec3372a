"""The main paper: Tables 1 to 4 and Figures 1 to 3."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

import pandas as pd

from firststep.evaluation import EvaluationSettings
from firststep.paper.experiment import (
    Experiment,
    Row,
    beyond,
    named_test,
    pair,
    protocol,
    published_cells,
    register_experiment,
    within,
)
from firststep.paper.numbers import published


@register_experiment("figure1")
def figure1() -> Experiment:
    """Figure 1: descent at high and low condition number; accuracy after 1 and 2 steps by network"""
    rows, printed = _by_network("cub")
    return Experiment(
        is_of_paper=True,
        title="Figure 1: the first steps by network, CUB, 5-way 5-shot",
        rows=rows,
        paper=printed,
        columns=((0, 1.0), (1, 1.0), (2, 1.0)),
        figure="figure1",
        note="Left in the figure: ten steps of gradient descent at learning rate 0.5 in two dimensions.",
    )


@register_experiment("table1")
def table1() -> Experiment:
    """Table 1: the MAML baseline, 5-way 1-shot and 5-shot"""
    numbers = published("baseline")
    columns = {"dataset": "mini-imagenet", "backbone": "conv4", "method": "maml", "step": 5}
    printed = []
    # Finn et al. used 32 filters.
    for whose, filters, ending in (("reimplemented", 64, ""), ("reported", 32, ", as Finn et al. report it")):
        cells = numbers[["shots", f"{whose}_accuracy", f"{whose}_ci95"]].set_axis(
            ["shots", "accuracy", "ci95"], axis=1
        )
        cells["label"] = [f"{shots}-shot{ending}" for shots in cells["shots"]]
        printed.append(published_cells(cells, itemgetter("label"), filters=filters, **columns))
    return Experiment(
        is_of_paper=True,
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


@register_experiment("figure2")
def figure2() -> Experiment:
    """Figure 2: accuracy over steps; step-1 validation accuracy and condition number during training"""
    rows, printed = _by_network("tiered-imagenet", ("conv4", "conv6"))
    return Experiment(
        is_of_paper=True,
        title="Figure 2: accuracy over steps, and training, tieredImageNet, Conv4 and Conv6, 5-way 5-shot",
        rows=rows,
        paper=printed,
        figure="figure2",
        note="The condition number in the figure is that of the first step on training tasks.",
    )


@register_experiment("table2")
def table2() -> Experiment:
    """Table 2: which parameters are constrained: none, cls, emb, ebn and their unions"""
    numbers = published("parameter_subsets")
    rows = tuple(
        Row(
            label=subset,
            config=protocol(
                "cub",
                "conv4",
                conditioned=subset != "none",
                subset="cls" if subset == "none" else subset,
            ),
            tests=(within(),),
            over=None if subset == "none" else "none",
        )
        for subset in numbers["constrained"].unique().tolist()
    )
    numbers["method"] = ["maml" if subset == "none" else "conditioned" for subset in numbers["constrained"]]
    numbers["subset"] = numbers["constrained"]
    return Experiment(
        is_of_paper=True,
        title="Table 2: which parameters are constrained, Conv4, 5-way 5-shot",
        rows=rows,
        paper=published_cells(numbers, lambda r: r["constrained"], dataset="cub", backbone="conv4"),
        note="The condition number is that of the constrained parameters; of the classifier for `none`.",
    )


@register_experiment("figure3")
def figure3() -> Experiment:
    """Figure 3: condition number of the constrained parameters against that of all, during training"""
    return replace(
        table2(),
        title="Figure 3: a subset of the parameters against all of them, Conv4, 5-way 5-shot",
        figure="figure3",
    )


@register_experiment("table3")
def table3() -> Experiment:
    """Table 3: one step at inference with a rate up to five times as large"""
    numbers = published("bigger_steps").rename(columns={"steps": "step", "lr_multiplier": "rate_multiplier"})
    longer = sorted(float(times) for times in numbers["rate_multiplier"].unique() if times != 1)
    tests = (
        within(),
        *(named_test(EvaluationSettings(steps=(1,), rate_multiplier=times)) for times in longer),
    )
    return Experiment(
        is_of_paper=True,
        title="Table 3: fewer but bigger steps at inference, Conv6, 5-way 5-shot",
        rows=tuple(pair("", tests, "mini-imagenet", "conv6")),
        paper=published_cells(numbers, lambda r: r["method"], dataset="mini-imagenet", backbone="conv6"),
        columns=tuple(dict.fromkeys(zip(numbers["step"], numbers["rate_multiplier"], strict=True))),
        note="`step 1 ×3` is one step with three times the rate that was trained with.",
    )


def _model_label(dataset: str, backbone: str, shots: int) -> str:
    return f"{dataset} {backbone} {shots}-shot"


@register_experiment("table4")
def table4() -> Experiment:
    """Table 4 and supplement: 5 datasets x 4 networks x 2 shots x 2 methods, to 100 steps"""
    depths, further = published("depths"), published("beyond_horizon")
    numbers = pd.concat([depths, further[further["step"] > depths["step"].max()]], ignore_index=True)
    models = depths[["dataset", "backbone", "shots"]].drop_duplicates().itertuples(index=False)
    rows = [
        row
        for dataset, backbone, shots in models
        for row in pair(
            _model_label(dataset, backbone, shots), (within(), beyond()), dataset, backbone, shots=int(shots)
        )
    ]
    return Experiment(
        is_of_paper=True,
        title="Table 4 and supplement: datasets and networks, 5-way, to 100 steps",
        rows=tuple(rows),
        paper=published_cells(
            numbers, lambda r: f"{_model_label(r['dataset'], r['backbone'], r['shots'])} {r['method']}"
        ),
        compares_datasets=True,
    )


def _by_network(
    dataset: str, backbones: tuple[str, ...] | None = None
) -> tuple[tuple[Row, ...], pd.DataFrame]:
    """Return a pair of 5-way 5-shot rows per network on one dataset, and Table 4's numbers for them."""
    depths = published("depths")
    shown = depths[(depths["dataset"] == dataset) & (depths["shots"] == 5)]
    if backbones is not None:
        shown = shown[shown["backbone"].isin(backbones)]
    rows = [
        row
        for backbone in shown["backbone"].unique().tolist()
        for row in pair(backbone, (within(),), dataset, backbone)
    ]
    return tuple(rows), published_cells(shown, lambda r: f"{r['backbone']} {r['method']}")
