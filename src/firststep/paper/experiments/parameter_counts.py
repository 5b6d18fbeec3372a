"""Parameters against accuracy: the supplement's table of preconditioning methods, and Figure 5."""

from __future__ import annotations

from dataclasses import replace

from firststep.paper.experiment import Experiment, Row, protocol, published_cells, within
from firststep.paper.numbers import published


def _label(method: str, backbone: str, filters: int) -> str:
    return f"{method} {backbone}-{filters}"


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
        name="preconditioners",
        title="Preconditioning methods: parameters against accuracy, 5-way 5-shot",
        rows=tuple(rows),
        paper=published_cells(
            numbers.assign(step=5),
            lambda r: _label(r["method"], r["backbone"], r["filters"]),
            dataset="mini-imagenet",
        ),
        shows_parameters=True,
        note="Rows are named by the paper's filters; a smaller scale has fewer, in proportion.",
    )


def figure5() -> Experiment:
    """Figure 5: parameters against accuracy"""
    return replace(
        preconditioners(),
        name="figure5",
        title="Figure 5: parameters against accuracy, 5-way 5-shot",
        figure="figure5",
    )
