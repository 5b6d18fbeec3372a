"""What an experiment is: rows that are trained and tested by the paper's protocol, beside its numbers.

An experiment is written at the paper's scale and on the paper's data. :mod:`firststep.paper.scale` and
:mod:`firststep.paper.settings` turn it into what is run here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from firststep.backbones import BACKBONES
from firststep.jobs import EvaluationSpec
from firststep.training import VALIDATION_SEED, TrainConfig

PAPER_FILTERS = 64
"""Of the Conv networks, where the paper does not say otherwise."""
WITHIN = tuple(range(6))
BEYOND = (10, 25, 50, 100)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of a table: a model and how it is tested.

    Examples:
        >>> from firststep.paper import Row, protocol, within
        >>> anil = protocol("glyphs", "conv4", conditioned=False, method="anil")
        >>> row = Row(label="anil", config=anil, tests=(within(),))
        >>> row.config.method
        'anil'
    """

    label: str
    config: TrainConfig
    tests: tuple[EvaluationSpec, ...]
    over: str | None = None
    """Label of the row that gains are taken over, episode by episode."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table of models to train and test, with the paper's numbers where it has some.

    Examples:
        >>> from firststep.paper import EXPERIMENTS
        >>> experiment = EXPERIMENTS["table2"]()
        >>> experiment.title, len(experiment.rows)
        ('Table 2: which parameters are constrained, Conv4, 5-way 5-shot', 8)
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    paper: pd.DataFrame = field(default_factory=pd.DataFrame)
    """What the paper prints for these rows, in the form of :func:`published_cells`; empty where nothing."""
    note: str = ""
    """What a reader must know about it."""
    columns: tuple[tuple[int, float], ...] | None = None
    """(steps, rate multiplier) of the table's columns; None for all that there are."""
    shows: tuple[str, ...] = ()
    """Beside accuracies, condition number and rank: ``parameters``; and before the first step
    ``class_offset``, ``largest_share``, ``support_loss``."""
    figure: str | None = None
    """The entry of ``firststep.paper.FIGURES`` that shows it; None for a table alone."""
    is_of_paper: bool = False
    """Whether it is a table or figure of the paper."""
    compares_datasets: bool = False
    """Whether rows are about datasets, so that one dataset must not stand in for another."""

    @property
    def datasets(self) -> list[str]:
        """The paper's, in its order."""
        return list(dict.fromkeys(row.config.data for row in self.rows))


def protocol(
    data: str,
    backbone: str,
    *,
    conditioned: bool,
    ways: int = 5,
    shots: int = 5,
    filters: int = PAPER_FILTERS,
    method: str = "maml",
    head: str = "per-class",
    subset: str = "cls",
    loss: str = "variance",
) -> TrainConfig:
    """The paper's protocol for one model; all else is the default of :class:`TrainConfig`.

    Examples:
        >>> from firststep.paper import protocol
        >>> config = protocol("mini-imagenet", "conv4", conditioned=True, shots=1)
        >>> config.updates, config.filters, config.conditioning
        (None, 64, 'variance')
    """
    return TrainConfig(
        data=data,
        backbone=backbone,
        image_size=BACKBONES[backbone].image_size,
        filters=filters if BACKBONES[backbone].has_filters else None,
        ways=ways,
        shots=shots,
        method=method,
        head=head,
        conditioning=loss if conditioned else "none",
        subset=subset,
        # Figure 3 needs the condition number of all parameters. It is costly and it changes no result, so
        # it is measured now and then, and for the networks of that figure alone.
        all_every=10 if (backbone, method, head) == ("conv4", "maml", "per-class") else 0,
    )


def named_test(
    *, steps: tuple[int, ...], episodes: int = 600, rate_multiplier: float = 1.0, split: str = "test"
) -> EvaluationSpec:
    """A test, named by what it tests, so that experiments which need the same one share its result.

    Examples:
        >>> from firststep.paper import named_test
        >>> named_test(steps=(1,), rate_multiplier=3.0).name
        'test-600episodes-steps1-x3'
    """
    contiguous = len(steps) > 1 and steps == tuple(range(steps[0], steps[-1] + 1))
    which = f"{steps[0]}to{steps[-1]}" if contiguous else "-".join(map(str, steps))
    longer = f"-x{rate_multiplier:g}" if rate_multiplier != 1 else ""
    options: dict[str, Any] = {"steps": steps, "episodes": episodes, "rate_multiplier": rate_multiplier}
    if split == "val":
        # The episodes that also chose the best model, as the paper's half-widths on this split suggest.
        options |= {"split": split, "seed": VALIDATION_SEED}
    return EvaluationSpec(name=f"{split}-{episodes}episodes-steps{which}{longer}", options=options)


def within() -> EvaluationSpec:
    """After every step up to the trained number.

    Examples:
        >>> from firststep.paper import within
        >>> within().options["steps"]
        (0, 1, 2, 3, 4, 5)
    """
    return named_test(steps=WITHIN)


def beyond() -> EvaluationSpec:
    """After more steps than were trained.

    Examples:
        >>> from firststep.paper import beyond
        >>> beyond().options["steps"]
        (10, 25, 50, 100)
    """
    return named_test(steps=BEYOND)


def twins(
    label: str, tests: tuple[EvaluationSpec, ...], data: str, backbone: str, **options: Any
) -> list[Row]:
    """The same model without and with the loss, the second compared with the first.

    Examples:
        >>> from firststep.paper import twins, within
        >>> [row.label for row in twins("conv4", (within(),), "glyphs", "conv4")]
        ['conv4 maml', 'conv4 conditioned']
    """
    plain = f"{label} maml".strip()
    return [
        Row(label=plain, config=protocol(data, backbone, conditioned=False, **options), tests=tests),
        Row(
            label=f"{label} conditioned".strip(),
            config=protocol(data, backbone, conditioned=True, **options),
            tests=tests,
            over=plain,
        ),
    ]


def published_cells(
    frame: pd.DataFrame, label: Callable[[dict[str, Any]], str], **facts: Any
) -> pd.DataFrame:
    """The paper's numbers in the form of our own (:mod:`firststep.paper.measurements`).

    Args:
        frame: with at least step, accuracy and ci95.
        label: function of a line of it to the label of the experiment's row.
        facts: columns that ``frame`` lacks, with the value that they have throughout.
    """
    cells = frame.assign(**facts)
    cells["row"] = [label(record) for record in cells.to_dict("records")]
    for column, default in {"rate_multiplier": 1.0, "ways": 5, "shots": 5, "filters": PAPER_FILTERS}.items():
        if column not in cells:
            cells[column] = default
    return cells
