"""Ours beside the paper's: the tidy accuracies as one line a cell, and as the table that people read."""

from __future__ import annotations

import numpy as np
import pandas as pd

from firststep.paper.experiment import Experiment, Row
from firststep.paper.measurements import CELL
from firststep.utils.table import MISSING, Table

ONE_SEED = "One training for each row: accuracy in per cent with 95 % half-width over the test episodes."
SEVERAL_SEEDS = (
    "Mean accuracy in per cent over the trainings of a row, one for each seed, with 95 % half-width of "
    "Student's t over these trainings; `(2 of 3)`: that many have results."
)
ABOUT = (
    f"`{MISSING}`: not run here, or not printed in the paper. `ours − paper`: with the half-width of the "
    "difference of two independent means. `gain, ours`: difference to the row named beside it, on the same "
    "tasks, {paired}; `gain, paper`: difference of the printed means. `κ`, `rank`: condition number "
    "(geometric mean) and numerical rank before the first step."
)


def legend(seeds: int) -> str:
    """How to read a table of that many trainings a row."""
    if seeds > 1:
        return f"{SEVERAL_SEEDS} {ABOUT.format(paired='training by training')}"
    return f"{ONE_SEED} {ABOUT.format(paired='episode by episode')}"


LINES = {
    "ours": ("accuracy", "ci95"),
    "paper": ("paper_accuracy", "paper_ci95"),
    "ours − paper": ("difference", "difference_ci95"),
    "gain, ours": ("gain", "gain_ci95"),
    "gain, paper": ("paper_gain", "paper_gain_ci95"),
}
"""Lines of a row in the table → the columns of their values and half-widths."""
SHOWN = {
    "parameters": "parameters",
    "class_offset": "class offset",
    "largest_share": "largest class %",
    "support_loss": "support loss",
}
"""What :attr:`Experiment.shows` may name → its column."""
FORMATS = {"parameters": ",.0f", "largest_share": ".1f"}
FROM_PAPER = ("dataset", "accuracy", "ci95", "gain", "gain_ci95")


def beside_paper(accuracies: pd.DataFrame) -> pd.DataFrame:
    """A line for each row, step and rate: ours, the paper's, the difference and the gains."""
    is_ours = accuracies["source"] == "ours"
    ours = accuracies[is_ours].drop(columns="source").rename(columns={"over": "gain_over"})
    paper = accuracies.loc[~is_ours, [*CELL, *FROM_PAPER]]
    paper = paper.rename(columns={column: f"paper_{column}" for column in FROM_PAPER})
    cells = ours.merge(paper, on=CELL, how="outer", sort=False)
    cells["difference"] = cells["accuracy"] - cells["paper_accuracy"]
    cells["difference_ci95"] = np.hypot(cells["ci95"], cells["paper_ci95"])
    order = {row: place for place, row in enumerate(accuracies["row"].unique())}
    cells = cells.assign(order=cells["row"].map(order)).sort_values(["order", *CELL[1:]], kind="stable")
    return cells.drop(columns="order").reset_index(drop=True)


def build_table(experiment: Experiment, rows: tuple[Row, ...], cells: pd.DataFrame, seeds: int = 1) -> Table:
    """For every row ours, the paper's, their difference, and the gains over another row.

    Args:
        experiment: which says what rows and columns there are.
        rows: the experiment's as they are run here.
        cells: what :func:`beside_paper` gave.
        seeds: how many trainings of a row were asked for; cells with fewer are marked.
    """
    keys = sorted({(int(s), float(t)) for s, t in zip(cells["step"], cells["rate_multiplier"], strict=True)})
    keys = [key for key in keys if experiment.columns is None or key in experiment.columns]
    facts = {"κ": "condition_number", "rank": "rank"} | {SHOWN[name]: name for name in experiment.shows}
    table = Table(["row", "", *map(_heading, keys), *facts], title=experiment.title, left_aligned=2)
    over = {row.label: row.over for row in (*experiment.rows, *rows)}
    by_row = {row: group.set_index(CELL[1:]) for row, group in cells.groupby("row", sort=False)}
    for label in dict.fromkeys([*(row.label for row in rows), *over, *by_row]):
        group = by_row.get(label)
        table.add_section()
        name, base = label, f"  over {over.get(label)}"
        for what, (value, width) in LINES.items():
            is_there = group is not None and group[value].notna().any()
            if not is_there and (what != "ours" or label not in over):
                continue
            if what.startswith("gain"):
                name, base = base, ""
            numbers = [MISSING] * len(keys)
            if is_there:
                numbers = [_text(group, key, value, width) + _mark(group, key, what, seeds) for key in keys]
            table.add_row(name, what, *numbers, *(_fact(group, f) for f in facts.values() if what == "ours"))
            name = ""
    return table


def _heading(key: tuple[int, float]) -> str:
    step, times = key
    return f"step {step}" if times == 1 else f"step {step} ×{times:g}"


def _text(group: pd.DataFrame, key: tuple[int, float], value: str, width: str) -> str:
    is_difference = not value.endswith("accuracy")
    if key not in group.index or np.isnan(group.at[key, value]):
        return "" if is_difference else MISSING
    number = round(group.at[key, value], 2) + 0.0  # there is no -0.0
    half_width = group.at[key, width]
    interval = "" if np.isnan(half_width) else f" ± {half_width:.2f}"
    return f"{number:{'+' if is_difference else ''}.2f}{interval}"


def _mark(group: pd.DataFrame, key: tuple[int, float], what: str, asked: int) -> str:
    """How many trainings a number of ours is from, where some are missing."""
    column = {"ours": "seeds", "gain, ours": "gain_seeds"}.get(what)
    if column is None or key not in group.index or pd.isna(group.at[key, column]):
        return ""
    done = int(group.at[key, column])
    return f" ({done} of {asked})" if 0 < done < asked else ""


def _fact(group: pd.DataFrame | None, name: str) -> str:
    """A number about our run as a whole, or about its model before the first step."""
    if group is None:
        return ""
    start = (0, 1.0)
    if name == "parameters":
        value = group["parameters"].max()
    else:
        value = group.at[start, name] if start in group.index else np.nan
    return "" if np.isnan(value) else f"{value:{FORMATS.get(name, '.3g')}}"
