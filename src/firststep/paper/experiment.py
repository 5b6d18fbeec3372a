"""Experiments: rows that are trained and tested by the paper's protocol, with the paper's numbers.

An experiment is defined at the paper's scale and on the paper's data. :mod:`firststep.paper.scale` and
:mod:`firststep.paper.settings` adapt it to what is run here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from firststep.backbones import BACKBONES
from firststep.evaluation import EvaluationSettings
from firststep.evaluation._internal import TEST_SEED
from firststep.jobs import EvaluationSpec
from firststep.training import VALIDATION_SEED, TrainConfig
from firststep.utils.registry import Registry

PAPER_FILTERS = 64
"""Filters of the Conv networks, unless the paper says otherwise."""
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

    name: str = ""
    """Name of the commands for it; :func:`register_experiment` sets it."""
    title: str
    rows: tuple[Row, ...]
    paper: pd.DataFrame = field(default_factory=pd.DataFrame)
    """The paper's numbers for these rows, as :func:`published_cells` returns them; may be empty."""
    note: str = ""
    """Remarks for the reader of the page."""
    columns: tuple[tuple[int, float], ...] | None = None
    """(step, rate multiplier) of the table's columns; None for all that were tested."""
    shows: tuple[str, ...] = ()
    """Further columns: ``parameters``, or ``class_offset``, ``largest_share`` and ``support_loss`` before the
    first step. The other metrics are always shown."""
    figure: str | None = None
    """Name of its figure in ``firststep.paper.FIGURES``; None if it has a table only."""
    is_of_paper: bool = False
    """Whether it is a table or figure of the paper."""
    compares_datasets: bool = False
    """Whether rows compare datasets, so that no dataset may replace another."""

    @property
    def datasets(self) -> list[str]:
        """The paper's datasets, in its order."""
        return list(dict.fromkeys(row.config.data for row in self.rows))


Make = Callable[[], Experiment]
EXPERIMENTS: Registry[Make] = Registry("experiment")
"""Name → function that returns the experiment; the first line of its docstring is its description.

The paper's experiments come first, in its order, then ours.

Examples:
    >>> from firststep.paper import EXPERIMENTS
    >>> list(EXPERIMENTS)
    ['figure1', 'table1', 'figure2', 'table2', 'figure3', 'table3', 'table4', 'loss-ablation',
     'ways-and-shots', 'figure4', 'preconditioners', 'figure5', 'supplement-curves',
     'supplement-subsets', 'heads', 'every-step', 'rivals']
"""


def register_experiment(name: str) -> Callable[[Make], Make]:
    """Return a decorator that registers a function as the experiment ``name``.

    The commands of ``firststep paper`` then list, plan, run and show it.

    Examples:
        >>> from firststep.paper import EXPERIMENTS, register_experiment
        >>> @register_experiment("again")
        ... def again():
        ...     return result.experiment
        >>> EXPERIMENTS["again"]().name
        'again'
        >>> EXPERIMENTS.unregister("again")
    """

    def register(make: Make) -> Make:
        @functools.wraps(make)
        def named() -> Experiment:
            return replace(make(), name=name)

        return EXPERIMENTS.register(name, named)

    return register


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
    """Return the paper's protocol for one model, with the other defaults of :class:`TrainConfig`.

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
        # Figure 3 needs the condition number of all parameters. It is costly and changes no result, so it is
        # measured at every tenth validation, and only for the networks of that figure.
        all_every=10 if (backbone, method, head) == ("conv4", "maml", "per-class") else 0,
    )


def named_test(settings: EvaluationSettings) -> EvaluationSpec:
    """Return a test, named by what it tests, so that experiments share the results of equal tests.

    Examples:
        >>> from firststep.evaluation import EvaluationSettings
        >>> from firststep.paper import named_test
        >>> named_test(EvaluationSettings(steps=(1,), rate_multiplier=3.0)).name
        'test-600episodes-steps1-x3'
    """
    steps, multiplier = settings.steps, settings.rate_multiplier
    contiguous = len(steps) > 1 and steps == tuple(range(steps[0], steps[-1] + 1))
    which = f"{steps[0]}to{steps[-1]}" if contiguous else "-".join(map(str, steps))
    longer = f"-x{multiplier:g}" if multiplier != 1 else ""
    if settings.split == "val":
        # The paper's half-widths on this split suggest the episodes that also chose the best model.
        settings = replace(settings, seed=VALIDATION_SEED)
    elif settings.seed != TEST_SEED:
        longer += f"-seed{settings.seed}"
    name = f"{settings.split}-{settings.episodes}episodes-steps{which}{longer}"
    return EvaluationSpec(name=name, settings=settings)


def within() -> EvaluationSpec:
    """Return the test after every step up to the trained number.

    Examples:
        >>> from firststep.paper import within
        >>> within().settings.steps
        (0, 1, 2, 3, 4, 5)
    """
    return named_test(EvaluationSettings(steps=WITHIN))


def beyond() -> EvaluationSpec:
    """Return the test after more steps than were trained.

    Examples:
        >>> from firststep.paper import beyond
        >>> beyond().settings.steps
        (10, 25, 50, 100)
    """
    return named_test(EvaluationSettings(steps=BEYOND))


def pair(
    label: str, tests: tuple[EvaluationSpec, ...], data: str, backbone: str, **options: Any
) -> list[Row]:
    """Return two rows, the same model without and with the loss; the second is compared with the first.

    Examples:
        >>> from firststep.paper import pair, within
        >>> [row.label for row in pair("conv4", (within(),), "glyphs", "conv4")]
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
    frame: pd.DataFrame, label: Callable[[dict[str, Any]], str], **columns: Any
) -> pd.DataFrame:
    """Return the paper's numbers in the form of our own (:mod:`firststep.paper.measurements`).

    Args:
        frame: with at least step, accuracy and ci95.
        label: returns the label of the experiment's row for a line of ``frame``.
        columns: columns that ``frame`` lacks, each with one value for all lines.
    """
    cells = frame.assign(**columns)
    cells["row"] = [label(record) for record in cells.to_dict("records")]
    for column, default in {"rate_multiplier": 1.0, "ways": 5, "shots": 5, "filters": PAPER_FILTERS}.items():
        if column not in cells:
            cells[column] = default
    return cells
