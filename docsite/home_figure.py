"""The figure of the home page: the three shipped models, for light and dark pages, wide and for a phone.

The numbers are those of the table beside it, 600 episodes from results/, and the training logs that come with
the models. ``python -m docsite figure`` draws it; the page chooses a file by ``<picture>``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from docsite.paths import DOCS
from docsite.results import RESULTS, read_csv
from firststep.evaluation import comparison_figure
from firststep.plotting import save_figure
from firststep.training import open_run

LAST_STEP = 5
STORED = {
    "builtin:glyphs-maml": "comparison.csv",
    "builtin:glyphs-conditioned": "comparison.csv",
    "builtin:glyphs": "shared-head.csv",
}
"""Model → the file that has its accuracy per step; the first has several models, by name."""
INK = {"light": "#24292f", "dark": "#d0d7de"}
INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
GRID = "#808080"


@dataclass(frozen=True)
class StoredEvaluation:
    """What the figure needs of an evaluation."""

    run: str
    label: str
    stored: str

    def rows(self) -> list[dict[str, Any]]:
        table = read_csv(RESULTS / "compare" / "glyphs-shipped-pair" / self.stored)
        ours = [row for row in table if row.get("model", self.label) == self.label]
        numbers = [{"step": int(row["step"]), **_percent(row)} for row in ours if row["step"].isdigit()]
        return [row for row in numbers if row["step"] <= LAST_STEP]


def _percent(row: dict[str, str]) -> dict[str, float]:
    return {name: float(row[name]) for name in ("accuracy", "ci95")}


def write() -> None:
    """Draw all four files."""
    models: list[Any] = [
        StoredEvaluation(name, open_run(name).config.describe(), file) for name, file in STORED.items()
    ]
    logs = [open_run(name).metrics() for name in STORED]
    for scheme, ink in INK.items():
        settings: dict[Any, Any] = {
            **dict.fromkeys(INKED, ink),
            "grid.color": GRID,
            "savefig.transparent": True,
        }
        with mpl.rc_context(settings):
            for place, stacked in (("", False), ("phone-", True)):
                figure = comparison_figure(models, logs, stacked=stacked)
                _edge(figure, ink)
                save_figure(figure, DOCS / "images" / f"glyphs-shipped-{place}{scheme}.svg")


def _edge(figure: Figure, ink: str) -> None:
    """Give markers with a black edge one that is seen on the page's colour."""
    for line in figure.findobj(Line2D):
        if isinstance(line, Line2D) and line.get_markeredgecolor() == "black":
            line.set_markeredgecolor(ink)
