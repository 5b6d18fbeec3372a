"""One self-contained HTML page with every result in a folder: tables, pictures, and how each was made."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firststep.evaluation.report import STYLE
from firststep.paper.experiments import EXPERIMENTS
from firststep.paper.table import LEGEND
from firststep.paper.writing import read_results

TITLE = "The paper's tables and figures, run here"


def report(folder: Path) -> str:
    """The page about what ``firststep paper run`` and ``show`` wrote into ``folder``."""
    order = list(EXPERIMENTS)
    results = [result for result in read_results(folder) if result["exists"]]
    results.sort(key=lambda r: order.index(r["experiment"]) if r["experiment"] in order else len(order))
    absent = [name for name in order if name not in {result["experiment"] for result in results}]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{TITLE}</title><style>{STYLE}</style></head><body>",
        f"<h1>{TITLE}</h1>",
        "<p>Hiller, Harandi and Drummond, “On Enforcing Better Conditioned Meta-Learning for Rapid Few-Shot "
        f"Adaptation”, NeurIPS 2022. {html.escape(LEGEND.replace('`', ''))}</p>",
        f"<p>{len(results)} results. Not run here: {html.escape(', '.join(absent) or 'none')}.</p>",
        "<ul>" + "".join(_entry(result) for result in results) + "</ul>",
        *(_section(result, folder) for result in results),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _entry(result: dict[str, Any]) -> str:
    return f'<li><a href="#{html.escape(result["stem"])}">{html.escape(_name(result))}</a></li>'


def _name(result: dict[str, Any]) -> str:
    return f"{result['title']} [{result['stem'].removeprefix(result['experiment'] + '-')}]"


def _section(result: dict[str, Any], folder: Path) -> str:
    table = result["table"]
    facts = "\n".join(f"{name}: {text}" for name, text in result["facts"].items())
    return "\n".join(
        [
            f'<h2 id="{html.escape(result["stem"])}">{html.escape(_name(result))}</h2>',
            f"<p><b>Scale: {_escape(result['facts']['scale'])}.</b> "
            f"{_escape(result['facts'].get('data', ''))} {_escape(result['note'])}</p>",
            _picture(folder / f"{result['stem']}.png", result["title"]) if result["figure"] else "",
            f'<div class="wide">{_table(table["columns"], table["lines"])}</div>',
            f"<details><summary>How it was made</summary><pre>{html.escape(facts)}</pre></details>",
        ]
    )


def _escape(text: str) -> str:
    return html.escape(text.replace("`", ""))


def _picture(path: Path, title: str) -> str:
    if not path.is_file():
        return f'<p class="muted">the picture {html.escape(path.name)} is missing: `firststep paper show`</p>'
    encoded = base64.b64encode(path.read_bytes()).decode()
    return f'<img alt="{html.escape(title)}" src="data:image/png;base64,{encoded}">'


def _table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in line) + "</tr>" for line in lines)
    return f"<table><tr>{head}</tr>{body}</table>"
