"""The loss ablation: variance of the log-eigenvalues against the log of the condition number."""

from __future__ import annotations

from firststep.paper.experiment import WITHIN, Experiment, Row, named_test, protocol, published_cells
from firststep.paper.numbers import published

LOSSES = {"log-eigenvalue-variance": "variance", "log-condition-number": "log-kappa"}
"""The paper's name → ours."""


def loss_ablation() -> Experiment:
    """Supplement: variance of the log-eigenvalues against log condition number, on the validation set"""
    numbers = published("loss_ablation").rename(columns={"val_accuracy": "accuracy"})
    rows = [
        Row(
            label=name,
            config=protocol("mini-imagenet", "conv6", conditioned=True, loss=loss),
            tests=(named_test(steps=WITHIN, episodes=100, split="val"),),
            over="log-condition-number" if loss == "variance" else None,
        )
        for name, loss in LOSSES.items()
    ]
    return Experiment(
        name="loss-ablation",
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
