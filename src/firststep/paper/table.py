"""A table: for every row ours, the paper's, their difference, and the gain over the row it is compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from firststep.paper.experiment import Experiment, Row

MISSING = "–"
LEGEND = (
    "Accuracy in per cent with 95 % half-width over the episodes. "
    f"`{MISSING}`: not run here, or not printed in the paper. `ours − paper`: half-width of the difference of two "
    "independent means. `gain, ours`: difference to the named row episode by episode, on the same tasks. "
    "`gain, paper`: difference of the printed means. `κ`: condition number before the first step, geometric mean."
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
    experiment: Experiment, rows: Sequence[Row], accuracies: pd.DataFrame, gains: pd.DataFrame
) -> Table:
    """``rows`` are the experiment's as they are run here: see :meth:`Setting.rows`."""
    ours, paper = _cells(accuracies, "ours"), _cells(accuracies, "paper")
    keys = sorted({key for cells in (*ours.values(), *paper.values()) for key in cells})
    facts = accuracies[accuracies["source"] == "ours"].drop_duplicates("row").set_index("row")
    starts = accuracies[(accuracies["source"] == "ours") & (accuracies["step"] == 0)]
    kappas = starts[starts["rate_multiplier"] == 1].set_index("row")["condition_number"].to_dict()
    over = {row.label: row.over for row in (*experiment.rows, *rows)}
    lines: list[list[str]] = []
    for label in dict.fromkeys([*(row.label for row in rows), *(r.label for r in experiment.rows), *paper]):
        mine, theirs = ours.get(label, {}), paper.get(label, {})
        block: list[tuple[str, dict[Key, Cell], bool]] = []
        if label in over:
            block.append(("ours", mine, False))
        if theirs:
            block.append(("paper", theirs, False))
        if mine and theirs:
            block.append(("ours − paper", _difference(theirs, mine), True))
        base = over.get(label)
        paired = gains[gains["row"] == label]
        if len(paired):
            block.append((f"gain, ours (over {base})", _gain_cells(paired), True))
        if base is not None and theirs and paper.get(base):
            block.append((f"gain, paper (over {base})", _difference(paper[base], theirs), True))
        for number, (what, cells, signed) in enumerate(block):
            is_ours = what == "ours"
            lines.append(
                [
                    label if number == 0 else "",
                    what,
                    *(_text(cells.get(key), signed) for key in keys),
                    f"{kappas[label]:.3g}" if is_ours and label in kappas else "",
                    f"{facts.loc[label, 'parameters']:,.0f}" if is_ours and label in facts.index else "",
                ]
            )
    return Table(["row", "", *map(_heading, keys), "κ", "parameters"], lines)


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


def _text(cell: Cell | None, signed: bool) -> str:
    if cell is None:
        return "" if signed else MISSING
    return f"{cell[0]:{'+' if signed else ''}.2f} ± {cell[1]:.2f}"
