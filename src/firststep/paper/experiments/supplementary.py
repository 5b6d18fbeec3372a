"""The supplement: loss ablation, ways and shots (with Figure 4), preconditioners (with Figure 5), curves."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from firststep.evaluation import EvaluationSettings
from firststep.paper.experiment import (
    WITHIN,
    Experiment,
    Row,
    named_test,
    pair,
    protocol,
    published_cells,
    register_experiment,
    within,
)
from firststep.paper.experiments.main_paper import figure2, table2
from firststep.paper.numbers import published

LOSSES = {"log-eigenvalue-variance": "variance", "log-condition-number": "log-kappa"}
"""The paper's name → ours."""


@register_experiment("loss-ablation")
def loss_ablation() -> Experiment:
    """Supplement: variance of the log-eigenvalues against log condition number, on the validation set"""
    numbers = published("loss_ablation").rename(columns={"val_accuracy": "accuracy"})
    rows = [
        Row(
            label=name,
            config=protocol("mini-imagenet", "conv6", conditioned=True, loss=loss),
            tests=(named_test(EvaluationSettings(steps=WITHIN, episodes=100, split="val")),),
            over="log-condition-number" if loss == "variance" else None,
        )
        for name, loss in LOSSES.items()
    ]
    return Experiment(
        is_of_paper=True,
        title="Loss ablation, Conv6, 5-way 5-shot, validation set",
        rows=tuple(rows),
        paper=published_cells(
            numbers.rename(columns={"loss": "row"}).assign(loss=[LOSSES[name] for name in numbers["loss"]]),
            lambda r: r["row"],
            dataset="mini-imagenet",
            backbone="conv6",
            method="conditioned",
        ),
        note="Accuracy on the validation episodes that also chose the best model of each run.",
    )


@register_experiment("ways-and-shots")
def ways_and_shots() -> Experiment:
    """Supplement: 5-way {1, 5, 10, 15, 20}-shot and {5, 10, 15}-way 5-shot"""
    numbers = published("ways_and_shots")
    tasks = numbers[["ways", "shots"]].drop_duplicates().itertuples(index=False)
    rows = [
        row
        for ways, shots in tasks
        for row in pair(
            f"{ways}-way {shots}-shot",
            (within(),),
            "mini-imagenet",
            "conv6",
            ways=int(ways),
            shots=int(shots),
        )
    ]
    return Experiment(
        is_of_paper=True,
        title="More ways and more shots, Conv6",
        rows=tuple(rows),
        paper=published_cells(numbers, lambda r: f"{r['ways']}-way {r['shots']}-shot {r['method']}"),
    )


@register_experiment("figure4")
def figure4() -> Experiment:
    """Figure 4: accuracy over steps by ways and shots"""
    return replace(
        ways_and_shots(),
        title="Figure 4: ways and shots, Conv6",
        figure="figure4",
    )


def _label(method: str, backbone: str, filters: int) -> str:
    return f"{method} {backbone}-{filters}"


@register_experiment("preconditioners")
def preconditioners() -> Experiment:
    """Supplement: preconditioning methods, parameters against accuracy, 5-way 5-shot"""
    numbers = published("preconditioners").rename(columns={"total_parameters": "parameters"})
    rows = []
    for method, backbone, filters in numbers[["method", "backbone", "filters"]].itertuples(index=False):
        conditioned = method == "conditioned"
        baseline = _label("maml", backbone, filters)
        config = protocol(
            "mini-imagenet",
            backbone,
            conditioned=conditioned,
            filters=int(filters),
            method="maml" if conditioned else method,
        )
        rows.append(
            Row(
                label=_label(method, backbone, filters),
                config=config,
                tests=(within(),),
                over=baseline if conditioned and backbone == "conv4" else None,
            )
        )
    return Experiment(
        is_of_paper=True,
        title="Preconditioning methods: parameters against accuracy, 5-way 5-shot",
        rows=tuple(rows),
        paper=published_cells(
            numbers.assign(step=5),
            lambda r: _label(r["method"], r["backbone"], r["filters"]),
            dataset="mini-imagenet",
        ),
        shows=("parameters",),
        note="Rows are named by the paper's filters; a smaller scale has fewer, in proportion.",
    )


@register_experiment("figure5")
def figure5() -> Experiment:
    """Figure 5: parameters against accuracy"""
    return replace(
        preconditioners(),
        title="Figure 5: parameters against accuracy, 5-way 5-shot",
        figure="figure5",
    )


@register_experiment("supplement-curves")
def supplement_curves() -> Experiment:
    """Supplement: accuracy by step and condition number by stage, on both splits, during training"""
    return replace(
        figure2(),
        title="Supplement: accuracy by step, condition number by stage, tieredImageNet, Conv4 and Conv6, "
        "5-way 5-shot",
        figure="supplement",
        note="The paper draws 1,600 iterations of 25 meta-updates.",
    )


@register_experiment("supplement-subsets")
def supplement_subsets() -> Experiment:
    """Supplement: condition number of the constrained parameters beside that of all, during training"""
    original = table2()
    return replace(
        original,
        title="Supplement: κ of a subset beside κ of all parameters, miniImageNet, Conv4, 5-way 5-shot",
        rows=tuple(replace(row, config=replace(row.config, data="mini-imagenet")) for row in original.rows),
        # The paper prints curves here; the accuracies of Table 2 are for CUB.
        paper=pd.DataFrame(),
        figure="subsets",
    )
