"""The tables of results/README.md: a line per result, with its numbers and a link to its page."""

from __future__ import annotations

import math
from functools import cache
from itertools import takewhile

import pandas as pd

from docsite.results import RESULTS
from firststep.paper import SavedResult, budget_of, read_results
from firststep.utils.table import MISSING, Table

HEADS = {
    "per-class": "MAML",
    "per-class + conditioning": "loss",
    "shared": "shared head",
    "shared + conditioning": "both",
    "per-class, gauss-newton": "Gauss-Newton",
    "shared, gauss-newton": "Gauss-Newton, shared head",
}
"""Row of the experiment `heads` → its column."""


@cache
def _results() -> dict[str, SavedResult]:
    return {saved.folder.relative_to(RESULTS).as_posix(): saved for saved in read_results(RESULTS)}


def _link(folder: str) -> str:
    return f"[{folder.split('/')[-1]}]({folder}/README.md)"


def _setting(saved: SavedResult) -> str:
    """Return network, images, training and seeds; the folder's name has the data."""
    budget, record = budget_of(saved.record, saved.cells), saved.record
    made, seeds = record.provenance, len(record.seeds)
    start = "from a pretraining" if made is not None and made.initial_weights else ""
    parts = [budget.networks, budget.images, budget.training, start, f"{seeds} seed{'s' * (seeds > 1)}"]
    return ", ".join(part for part in parts if part)


def _ours(saved: SavedResult, multiplier: float = 1.0) -> dict[tuple[str, int], dict[str, float]]:
    """Return (row, step) → the numbers of ours at a multiple of the trained rate."""
    cells = saved.cells[(saved.cells["rate_multiplier"] == multiplier) & saved.cells["accuracy"].notna()]
    return {(cell["row"], int(cell["step"])): cell for cell in cells.to_dict("records")}


def _number(cell: dict[str, float] | None, value: str = "accuracy", width: str = "ci95") -> str:
    if cell is None or pd.isna(cell[value]):
        return MISSING
    sign = "+" if value == "gain" else ""
    interval = "" if math.isnan(cell[width]) else f" ± {cell[width]:.1f}"
    number = round(cell[value], 1) + 0.0  # turns -0.0 into 0.0
    return f"{number:{sign}.1f}{interval}"


def gains(*folders: str) -> str:
    """Return a line per pair of rows: accuracy of both, and the gain of the second, after 1 and 5 steps."""
    columns = ["result", "setting", "", "step 1", "gain", "step 5", "gain"]
    table = Table(columns, left_aligned=3)
    for folder in folders:
        saved = _results()[folder]
        ours = _ours(saved)
        pairs = {
            row: cell["gain_over"] for (row, step), cell in ours.items() if step == 1 and cell["gain_over"]
        }
        for number, (row, over) in enumerate(pairs.items()):
            cells: list[str] = []
            for step in (1, 5):
                first, second = ours.get((str(over), step)), ours.get((row, step))
                cells += [f"{_number(first)} → {_number(second)}", _number(second, "gain", "gain_ci95")]
            start = [_link(folder), _setting(saved)] if number == 0 else ["", ""]
            table.add_row(*start, _shared(str(over), row) if len(pairs) > 1 else "", *cells)
    return table.to_markdown()


def _shared(one: str, other: str) -> str:
    """Return the words with which both labels begin."""
    pairs = zip(one.split(" "), other.split(" "), strict=False)
    return " ".join(first for first, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def starts(*folders: str) -> str:
    """Return a line per result of `heads`: accuracies after 1 and 5 steps by head."""
    table = Table(["result", "setting", "step", *HEADS.values()], left_aligned=2)
    for folder in folders:
        saved = _results()[folder]
        ours = _ours(saved)
        for step in (1, 5):
            start = [_link(folder), _setting(saved)] if step == 1 else ["", ""]
            table.add_row(*start, str(step), *(_number(ours.get((row, step))) for row in HEADS))
    return table.to_markdown()


def subsets(*folders: str) -> str:
    """Return a line per set of constrained parameters: accuracies after 1 and 5 steps in each result."""
    table = Table(
        ["constrained", *(f"{_link(folder)}, step {step}" for folder in folders for step in (1, 5))]
    )
    found = [_ours(_results()[folder]) for folder in folders]
    for row in dict.fromkeys(row for ours in found for row, _ in ours):
        table.add_row(row, *(_number(ours.get((row, step))) for ours in found for step in (1, 5)))
    return table.to_markdown()


def bigger_steps(*folders: str) -> str:
    """Return a line per result of `table3`: the gain of one step with a multiple of the trained rate."""
    multiples = (1.0, 2.0, 3.0, 4.0, 5.0)
    headings = [f"gain, rate ×{times:g}" for times in multiples]
    table = Table(["result", "setting", *headings], left_aligned=2)
    for folder in folders:
        saved = _results()[folder]
        cells = [_ours(saved, times).get(("conditioned", 1)) for times in multiples]
        shown = [_number(cell, "gain", "gain_ci95") for cell in cells]
        table.add_row(_link(folder), _setting(saved), *shown)
    return table.to_markdown()


def methods(folder: str) -> str:
    """Return a line per method: accuracy after 1 step, and the gains of the loss and of a shared head."""
    saved = _results()[folder]
    ours = _ours(saved)
    table = Table(["method, step 1", "accuracy", "gain of the loss", "gain of a shared head"])
    for (row, step), cell in ours.items():
        if step == 1 and not cell["gain_over"]:
            compared = [ours.get((f"{row}{ending}", 1)) for ending in (" + conditioning", ", shared head")]
            table.add_row(row, _number(cell), *(_number(each, "gain", "gain_ci95") for each in compared))
    return f"{_link(folder)}: {_setting(saved)}.\n\n{table.to_markdown()}"
