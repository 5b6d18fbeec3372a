"""The page of a result, rendered from its record and its numbers."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from firststep.paper.comparison_table import build_table
from firststep.paper.describe import describe_stand_in, how_it_was_made
from firststep.paper.measurements import CELL
from firststep.paper.record import Layout, ResultRecord
from firststep.utils.table import MISSING

FIGURE = "figure.png"
ONE_SEED = (
    "Accuracies are in per cent, of one training per row, with the 95 % half-width over the test episodes."
)
SEVERAL_SEEDS = (
    "Accuracies are in per cent, means over one training per seed, with the 95 % half-width of Student's t "
    "over the trainings. `(2 of 3)` marks a cell with fewer trainings."
)
ABOUT = (
    f"`{MISSING}` was not run here, or is not printed in the paper. `ours − paper` has the half-width of a "
    "difference of independent means. `gain, ours` is the difference to the row named beside it on the same "
    "tasks, paired by {paired}. `gain, paper` is the difference of the printed means."
)
BEFORE = {
    "condition_number": "`κ`: condition number before the first step, geometric mean.",
    "rank": "`rank`: numerical rank of the Gram matrix before the first step.",
}
FEW = 3
"""Number of compared rows that the conclusion names one by one."""


class Gain(NamedTuple):
    """A row's gain over another row, in points."""

    row: str
    over: str
    value: float
    half_width: float

    def __str__(self) -> str:
        interval = "" if pd.isna(self.half_width) else f" ± {self.half_width:.1f}"
        return f"{self.value:+.1f}{interval}"

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes zero."""
        return bool(abs(self.value) > self.half_width)


def page_text(record: ResultRecord, cells: pd.DataFrame) -> str:
    """Render the page of a result as Markdown."""
    seeds = len(record.seeds)
    found, data = conclusion(record, cells), describe_stand_in(record.stand_in)
    lines = [
        f"# {record.title}",
        "",
        *([f"**{found}**", ""] if found else []),
        *([data, ""] if data else []),
        build_table(record.table, cells, seeds).to_markdown(),
        *([f"![{record.title}]({FIGURE})", ""] if record.figure else []),
        "## How to read it",
        "",
        f"{legend(record.table, seeds)} {record.note}".strip(),
        "",
        *(["## Remarks", "", *(f"- {remark}" for remark in record.remarks), ""] if record.remarks else []),
        "## How it was made",
        "",
        *(f"- {name}: {text}" for name, text in how_it_was_made(record, cells).items()),
    ]
    return "\n".join(lines) + "\n"


def legend(layout: Layout, seeds: int) -> str:
    """Return how to read a table with this number of trainings per row."""
    start, paired = (SEVERAL_SEEDS, "training") if seeds > 1 else (ONE_SEED, "episode")
    shown = [text for name, text in BEFORE.items() if name in layout.shows]
    return " ".join([start, ABOUT.format(paired=paired), *shown])


def conclusion(record: ResultRecord, cells: pd.DataFrame) -> str:
    """Return the gains after the first and the last trained step; empty if nothing is compared."""
    steps = 5 if record.provenance is None else record.provenance.config.get("steps", 5)
    trained = steps if isinstance(steps, int) else 5
    shown = {column.step for column in record.table.columns if column.rate_multiplier == 1}
    parts = []
    for step in sorted(step for step in shown if step in (1, trained)):
        if gains := _gains(cells, step):
            after = f"after {step} step{'s' * (step > 1)}"
            parts.append(_one_by_one(gains, after) if len(gains) <= FEW else _counted(gains, after))
    return " ".join(parts)


def _gains(cells: pd.DataFrame, step: int) -> list[Gain]:
    at = cells[(cells["step"] == step) & (cells["rate_multiplier"] == 1) & cells["gain"].notna()]
    return [Gain(*line) for line in at[[CELL[0], "gain_over", "gain", "gain_ci95"]].itertuples(index=False)]


def _one_by_one(gains: list[Gain], after: str) -> str:
    listed = ", ".join(f"`{gain.row}` {gain} points over `{gain.over}`" for gain in gains)
    return f"Gain {after}: {listed}."


def _counted(gains: list[Gain], after: str) -> str:
    better = sum(gain.is_clear and gain.value > 0 for gain in gains)
    worse = sum(gain.is_clear and gain.value < 0 for gain in gains)
    best = max(gains, key=lambda gain: gain.value)
    level = len(gains) - better - worse
    return (
        f"{after.capitalize()}, {better} of {len(gains)} rows gain, {worse} lose and {level} are level; the "
        f"largest gain is {best} points, `{best.row}` over `{best.over}`."
    )
