"""Draw the figure of the home page: the three shipped models, for light and dark pages, wide and for a phone.

The numbers are those of the table beside it (600 episodes, from results/) and of the training logs that come
with the models. ``python -m docsite figure`` draws it; the page chooses a file by ``<picture>``.
"""

from __future__ import annotations

import re
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
    """The part of an evaluation that the figure needs."""

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
            "svg.fonttype": "none",
            "font.sans-serif": ["DejaVu Sans"],
        }
        with mpl.rc_context(settings):
            for place, stacked in (("", False), ("phone-", True)):
                figure = comparison_figure(models, logs, stacked=stacked)
                _edge(figure, ink)
                path = DOCS / "images" / f"glyphs-shipped-{place}{scheme}.svg"
                save_figure(figure, path)
                path.write_text(_slim(path.read_text()))


def _slim(svg: str) -> str:
    """Shorten an SVG of matplotlib: no metadata, unused ids or groups; two decimals; styles as classes."""
    svg = re.sub(r"'DejaVu Sans'(?!,)", "'DejaVu Sans', sans-serif", svg)
    svg = re.sub(r"<metadata>.*?</metadata>|<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->", "", svg, flags=re.DOTALL)
    used = set(re.findall(r"#([\w.]+)", svg))
    svg = re.sub(r' id="([\w.]+)"', lambda found: found[0] if found[1] in used else "", svg)
    svg = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", svg)
    svg = re.sub(r'\s*\n\s*(?=[A-Za-z0-9"])', " ", svg)
    while (shorter := re.sub(r"<g>((?:(?!<g\b).)*?)</g>", r"\1", svg, flags=re.DOTALL)) != svg:
        svg = shorter
    styles = {
        style: f"s{number}" for number, style in enumerate(dict.fromkeys(re.findall(r' style="(.*?)"', svg)))
    }
    svg = re.sub(r' style="(.*?)"', lambda found: f' class="{styles[found[1]]}"', svg)
    classes = "".join(f".{name}{{{style}}}\n" for style, name in styles.items())
    return re.sub(r"\s*\n\s*", "\n", svg.replace("</style>", f"\n{classes}</style>", 1)).strip() + "\n"


def _edge(figure: Figure, ink: str) -> None:
    """Give markers with a black edge one that is seen on the page's colour."""
    for line in figure.findobj(Line2D):
        if isinstance(line, Line2D) and line.get_markeredgecolor() == "black":
            line.set_markeredgecolor(ink)
