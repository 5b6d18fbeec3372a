"""One self-contained HTML page with every result below a folder: tables, figures, how each was made."""

from __future__ import annotations

import html
from pathlib import Path

from firststep.evaluation import PAGE_STYLE
from firststep.paper.comparison_table import legend
from firststep.paper.experiments import EXPERIMENTS
from firststep.paper.output import SavedResult, read_results
from firststep.plotting import embed_png

WORDS = "th.text, td.text { text-align: left; }"
TITLE = "The paper's tables and figures, run here"


def html_overview(folder: Path) -> str:
    """The page about what ``firststep paper run`` and ``show`` wrote into ``folder``."""
    order = list(EXPERIMENTS)
    results = [result for result in read_results(folder) if result.exists]
    results.sort(key=lambda r: order.index(r.experiment) if r.experiment in order else len(order))
    absent = [name for name in order if name not in {result.experiment for result in results}]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{TITLE}</title><style>{PAGE_STYLE}{WORDS}</style></head><body>",
        f"<h1>{TITLE}</h1>",
        "<p>Hiller, Harandi and Drummond, “On Enforcing Better Conditioned Meta-Learning for Rapid Few-Shot "
        f"Adaptation”, NeurIPS 2022. {_escape(legend(1))}</p>",
        f"<p>{len(results)} results. Not run here: {_escape(', '.join(absent) or 'none')}.</p>",
        "<ul>",
        *(f'<li><a href="#{_anchor(result)}">{_heading(result)}</a></li>' for result in results),
        "</ul>",
        *(_section(result) for result in results),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _section(result: SavedResult) -> str:
    facts = "\n".join(f"{name}: {text}" for name, text in result.facts.items())
    figure = result.figure
    return "\n".join(
        [
            f'<h2 id="{_anchor(result)}">{_heading(result)}</h2>',
            f"<p><b>Scale: {_escape(result.facts['scale'])}.</b> "
            f"{_escape(result.facts.get('data', ''))} {_escape(result.note)}</p>",
            embed_png(figure.read_bytes(), html.escape(result.title)) if figure is not None else "",
            f'<div class="wide">{result.table.to_html()}</div>',
            f"<details><summary>How it was made</summary><pre>{html.escape(facts)}</pre></details>",
        ]
    )


def _anchor(result: SavedResult) -> str:
    return html.escape(f"{result.experiment}-{result.folder.name}")


def _heading(result: SavedResult) -> str:
    return html.escape(f"{result.title} [{result.folder.name}]")


def _escape(text: str) -> str:
    return html.escape(text.replace("`", ""))
