"""The report: one self-contained HTML page with every table and figure of the paper, and ours beside them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from firststep.evaluation._internal import PAGE_STYLE
from firststep.paper.comparison_table import PRINTED, beside_paper, build_table, layout_of
from firststep.paper.describe import describe_stand_in, how_it_was_made
from firststep.paper.experiment import Experiment
from firststep.paper.experiments import EXPERIMENTS
from firststep.paper.figures import FIGURES
from firststep.paper.measurements import HISTORIES, accuracy_frame, seed_columns, tidy
from firststep.paper.page import ABOUT, BEFORE, ONE_SEED, SEVERAL_SEEDS, conclusion
from firststep.paper.report_summary import (
    NAMED,
    NOT_RUN,
    ReportEntry,
    absent_rows,
    count_line,
    named,
    read_entries,
    summary_table,
)
from firststep.plotting import embed_figure, embed_png
from firststep.utils.table import MISSING, Table

STYLE = """
h2 { border-top: 2px solid #888; padding-top: 1rem; margin-top: 3rem; }
h3, h4 { font-size: 1rem; margin-top: 2rem; }
td { border-bottom: none; } tr:has(td:first-child:not(:empty)) td { border-top: 1px solid #ddd; }
tr.first td { border-top: 1px solid #888 !important; }
table.summary { font-size: .8rem; } .absent { color: #a33; }
table.summary td, table.summary th { padding: .25rem .5rem; white-space: normal; vertical-align: top; }
@media print { body { max-width: none; font-size: 11px; } img { max-height: 18cm; } }
"""
TITLE = "The paper's tables and figures, run here"
SHORT = 15
"""Number of lines up to which a table is open at first."""
READING = " ".join(
    [
        f"How to read the tables. With one seed: {ONE_SEED} With several: {SEVERAL_SEEDS}",
        ABOUT.format(paired="episode, or by training"),
        *BEFORE.values(),
        "The interval of a bold gain excludes zero. The summary counts a cell of the paper as filled if it "
        "was run on other data, too. Intervals of one training understate what another seed would change.",
    ]
)


def html_overview(folder: Path) -> str:
    """Return the page about what ``firststep paper run`` and ``show`` wrote into ``folder``.

    Examples:
        >>> from firststep.paper import html_overview, write_result
        >>> _ = write_result(result, Path("results"))
        >>> html_overview(Path("results")).startswith("<!doctype html>")
        True
    """
    entries = read_entries(folder)
    own = [name for name in entries if name in EXPERIMENTS and not EXPERIMENTS[name]().is_of_paper]
    own += [name for name in entries if name not in EXPERIMENTS]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{TITLE}</title><style>{PAGE_STYLE}{STYLE}</style></head><body>",
        f"<h1>{TITLE}</h1>",
        "<p>Hiller, Harandi and Drummond, “On Enforcing Better Conditioned Meta-Learning for Rapid Few-Shot "
        "Adaptation”, NeurIPS 2022: every table and figure in its order, our runs beside the printed "
        f"numbers; then experiments that the paper does not have. {_escape(count_line(entries))}</p>",
        "<h2>What exists</h2>",
        f'<div class="wide">{_summary(entries)}</div>',
        f"<p>{_escape(READING)}</p>",
        *(_experiment(name, entries[name]) for name in entries if name not in own),
        "<h2>Not in the paper</h2>",
        *(_experiment(name, entries[name], level=3) for name in own),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _summary(entries: dict[str, list[ReportEntry]]) -> str:
    """Return the summary with links to the sections; experiments that were not run are marked."""
    table = summary_table(entries)
    anchors = [
        anchor for name, own in entries.items() for anchor in ([entry.anchor for entry in own] or [name])
    ]
    lines = []
    for number, (row, anchor) in enumerate(zip(table.rows, anchors, strict=True)):
        name, *texts = (html.escape(cell.text) for cell in row)
        cells = [f'<a href="#{html.escape(anchor)}">{name}</a>', *texts]
        kind = ' class="text absent"' if NOT_RUN in texts else ' class="text"'
        first = ' class="first"' if number in table.sections else ""
        lines.append(f"<tr{first}>{''.join(f'<td{kind}>{cell}</td>' for cell in cells)}</tr>")
    head = "".join(f'<th class="text">{html.escape(name)}</th>' for name in table.columns)
    body = "\n".join(lines)
    return f'<table class="summary"><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>'


def _experiment(name: str, own: list[ReportEntry], level: int = 2) -> str:
    experiment = EXPERIMENTS[name]() if name in EXPERIMENTS else None
    title = experiment.title if experiment is not None else own[0].record.title
    parts = [f'<h{level} id="{html.escape(name)}">{_escape(title)}</h{level}>']
    parts += [_result(entry, title, level + 1) for entry in own]
    if experiment is not None and not own:
        parts.append(f'<p class="absent">{NOT_RUN.capitalize()}.</p>')
        if experiment.is_of_paper:
            parts += [_figure_of_paper(experiment), _details("The paper's numbers", _printed(experiment))]
    if experiment is not None and (absent := absent_rows(name, own)):
        rows = _printed(experiment, only=absent) if experiment.is_of_paper else None
        parts.append(_missing(absent, rows, "of the rows that the experiment has now"))
    return "\n".join(parts)


def _result(entry: ReportEntry, title: str, level: int) -> str:
    record, cells, figure = entry.record, entry.saved.cells, entry.saved.figure
    found = [conclusion(record, cells), describe_stand_in(record.stand_in), record.definition, record.note]
    other = "" if record.title == title else f": {record.title}"
    made = html.escape("\n".join(f"{name}: {text}" for name, text in how_it_was_made(record, cells).items()))
    table = build_table(record.table, cells, len(record.seeds), only=entry.coverage.run, highlight=True)
    heading = entry.saved.folder.name + other
    return "\n".join(
        [
            f'<h{level} id="{html.escape(entry.anchor)}">{_escape(heading)}</h{level}>',
            f"<p><b>{_escape(str(entry.budget))}; {_escape(entry.trainings)}.</b></p>",
            f"<p>{' '.join(_escape(_sentence(text)) for text in found if text)}</p>",
            embed_png(figure.read_bytes(), html.escape(record.title)) if figure is not None else "",
            f'<div class="wide">{_without_empty_columns(table).to_html()}</div>',
            _missing(entry.gaps) if entry.gaps else "",
            f"<details><summary>How it was made</summary><pre>{made}</pre></details>",
        ]
    )


def _missing(gaps: list[str], printed: Table | None = None, of: str = "") -> str:
    """Return the first missing rows by name, and in a folded part all of them or the paper's numbers."""
    heading = ", ".join(part for part in (NOT_RUN.capitalize(), of) if part)
    start = f"<b>{heading} ({len(gaps)})</b>: {_escape(named(gaps))}."
    if len(gaps) <= NAMED and printed is None:
        return f"<p>{start}</p>"
    inside = f"<p>{_escape('; '.join(gaps))}.</p>"
    if printed is not None and printed.rows:
        inside = f'<p>The paper prints:</p><div class="wide">{printed.to_html()}</div>'
    return f"<details><summary>{start}</summary>{inside}</details>"


def _accuracies_of_paper(experiment: Experiment) -> pd.DataFrame:
    over = {row.label: row.over for row in experiment.rows if row.over is not None}
    return accuracy_frame(tidy([], seed_columns()), experiment.paper, over, seeds=1)


def _printed(experiment: Experiment, only: Sequence[str] | None = None) -> Table:
    """Return the paper's numbers for these rows, or for all."""
    cells = beside_paper(_accuracies_of_paper(experiment))
    table = build_table(layout_of(experiment, (), cells), cells, lines=PRINTED, only=only)
    return _without_empty_columns(table)


def _without_empty_columns(table: Table) -> Table:
    filled = [
        place
        for place in range(len(table.columns))
        if place < table.left_aligned or any(row[place].text not in ("", MISSING) for row in table.rows)
    ]
    return Table(
        [table.columns[place] for place in filled],
        left_aligned=table.left_aligned,
        rows=[[row[place] for place in filled] for row in table.rows],
    )


def _figure_of_paper(experiment: Experiment) -> str:
    if experiment.figure is None:
        return ""
    draw, numbers = FIGURES[experiment.figure], _accuracies_of_paper(experiment)
    figure = draw(numbers, tidy([], HISTORIES), NOT_RUN, "The paper's numbers alone.")
    # The paper has no table of its curves during training.
    return embed_figure(figure) if any(axes.lines for axes in figure.axes) else ""


def _details(summary: str, table: Table) -> str:
    inside = f'<div class="wide">{table.to_html()}</div>'
    is_open = " open" if len(table.rows) <= SHORT else ""
    return f"<details{is_open}><summary>{_escape(summary)}</summary>{inside}</details>"


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _escape(text: str) -> str:
    return html.escape(text.replace("`", ""))
