"""A table: for every row ours, the paper's, their difference, and the gain over another row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from firststep.paper.experiment import Experiment, Row

MISSING = "–"
LEGEND = (
    "Accuracy in per cent with 95 % half-width over the episodes. "
    f"`{MISSING}`: not run here, or not printed in the paper. `ours − paper`: with the half-width of the "
    "difference of two independent means. `gain, ours`: difference to the row named beside it, episode by "
    "episode on the same tasks; `gain, paper`: difference of the printed means. `κ`: condition number before "
    "the first step, geometric mean."
)
Key = tuple[int, float]
"""(inner steps, how many times the trained rate)"""
Cell = tuple[float, float]
"""(value, 95 % half-width)"""


@dataclass(frozen=True)
class Table:
    columns: list[str]
    lines: list[list[str]]


def build_table(
    experiment: Experiment,
    rows: Sequence[Row],
    accuracies: pd.DataFrame,
    gains: pd.DataFrame,
    decimals: int = 2,
) -> Table:
    """``rows`` are the experiment's as they are run here: see :meth:`Setting.rows`."""
    ours, paper = _cells(accuracies, "ours"), _cells(accuracies, "paper")
    keys = sorted({key for cells in (*ours.values(), *paper.values()) for key in cells})
    keys = [key for key in keys if experiment.columns is None or key in experiment.columns]
    last = _last_columns(accuracies)
    shown = ["κ", "parameters"] if experiment.shows_parameters else ["κ"]
    over = {row.label: row.over for row in (*experiment.rows, *rows)}
    lines: list[list[str]] = []
    for label in dict.fromkeys([*(row.label for row in rows), *(r.label for r in experiment.rows), *paper]):
        mine, theirs, base = ours.get(label, {}), paper.get(label, {}), over.get(label)
        block: list[tuple[str, str, dict[Key, Cell], bool]] = []
        if label in over:
            block.append((label, "ours", mine, False))
        if theirs:
            block.append(("" if block else label, "paper", theirs, False))
        if mine and theirs:
            block.append(("", "ours − paper", _difference(theirs, mine), True))
        paired = _gain_cells(gains[gains["row"] == label])
        if paired:
            block.append((f"  over {base}", "gain, ours", paired, True))
        if base is not None and theirs and paper.get(base):
            block.append(
                ("" if paired else f"  over {base}", "gain, paper", _difference(paper[base], theirs), True)
            )
        for name, what, cells, signed in block:
            numbers = [_text(cells.get(key), signed, decimals) for key in keys]
            facts = [last[column].get(label, "") if what == "ours" else "" for column in shown]
            lines.append([name, what, *numbers, *facts])
    return Table(["row", "", *map(_heading, keys), *shown], lines)


def _last_columns(accuracies: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Column → row → text, of our runs."""
    ours = accuracies[accuracies["source"] == "ours"]
    starts = ours[(ours["step"] == 0) & (ours["rate_multiplier"] == 1)].drop_duplicates("row")
    counts = ours.drop_duplicates("row")
    return {
        "κ": {
            row: f"{kappa:.3g}" for row, kappa in zip(starts["row"], starts["condition_number"], strict=True)
        },
        "parameters": {
            row: f"{count:,.0f}" for row, count in zip(counts["row"], counts["parameters"], strict=True)
        },
    }


def _cells(frame: pd.DataFrame, source: str) -> dict[str, dict[Key, Cell]]:
    found: dict[str, dict[Key, Cell]] = {}
    columns = ["row", "step", "rate_multiplier", "accuracy", "ci95"]
    for row, step, times, value, width in frame[frame["source"] == source][columns].itertuples(index=False):
        found.setdefault(row, {})[int(step), float(times)] = float(value), float(width)
    return found


def _gain_cells(paired: pd.DataFrame) -> dict[Key, Cell]:
    columns = ["step", "rate_multiplier", "gain", "ci95"]
    return {(int(s), float(t)): (g, w) for s, t, g, w in paired[columns].itertuples(index=False)}


def _difference(first: dict[Key, Cell], second: dict[Key, Cell]) -> dict[Key, Cell]:
    """Second minus first where both are; the half-widths of independent means add as squares."""
    return {
        key: (second[key][0] - first[key][0], math.hypot(second[key][1], first[key][1]))
        for key in second
        if key in first
    }


def _heading(key: Key) -> str:
    step, times = key
    return f"step {step}" if times == 1 else f"step {step} ×{times:g}"


def _text(cell: Cell | None, signed: bool, decimals: int) -> str:
    if cell is None:
        return "" if signed else MISSING
    value = round(cell[0], decimals) + 0.0  # there is no -0.0
    return f"{value:{'+' if signed else ''}.{decimals}f} ± {cell[1]:.{decimals}f}"
