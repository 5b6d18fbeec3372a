"""Which parameters the loss constrains: Table 2, Figure 3 and the supplement's curves of it."""

from __future__ import annotations

from dataclasses import replace

from firststep.paper.experiment import Experiment, Row, protocol, published_cells, within
from firststep.paper.numbers import published


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
        name="table2",
        title="Table 2: which parameters are constrained, Conv4, 5-way 5-shot",
        rows=rows,
        paper=published_cells(numbers, lambda r: r["constrained"], dataset="cub", backbone="conv4"),
        note="The condition number is that of the constrained parameters; of the classifier for `none`.",
    )


def figure3() -> Experiment:
    """Figure 3: condition number of the constrained parameters against that of all, during training"""
    return replace(
        table2(),
        name="figure3",
        title="Figure 3: a subset of the parameters against all of them, Conv4, 5-way 5-shot",
        figure="figure3",
    )


def supplement_subsets() -> Experiment:
    """Supplement: validation accuracies of every step during training, for every subset"""
    return replace(
        table2(),
        name="supplement-subsets",
        title="Supplement: training curves by constrained parameters, Conv4, 5-way 5-shot",
        figure="supplement",
    )
