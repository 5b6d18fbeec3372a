"""The report: one self-contained HTML page with every table and figure of the paper, and ours beside them."""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence
from pathlib import Path

import pandas as pd

from firststep.evaluation._internal import PAGE_STYLE
from firststep.paper.comparison_table import PRINTED, beside_paper, build_table, layout_of
from firststep.paper.describe import (
    ABOUT,
    BEFORE,
    ONE_SEED,
    SEVERAL_SEEDS,
    budget_of,
    conclusion,
    describe_stand_in,
    how_it_was_made,
)
from firststep.paper.experiment import Experiment
from firststep.paper.figures import FIGURES
from firststep.paper.measurements import HISTORIES, accuracy_frame, seed_columns, tidy
from firststep.paper.record import ResultRecord
from firststep.paper.sections import Section, read_sections, rows_of, rows_run
from firststep.paper.stored import SavedResult
from firststep.plotting import embed_figure, embed_png
from firststep.utils.table import MISSING, Table

STYLE = """
h2 { border-top: 2px solid #888; padding-top: 1rem; margin-top: 3rem; }
h3, h4 { font-size: 1rem; margin-top: 2rem; }
td { border-bottom: none; } tr:has(td:first-child:not(:empty)) td { border-top: 1px solid #ddd; }
table.summary { font-size: .8rem; } .absent { color: #a33; }
table.summary td, table.summary th { padding: .25rem .5rem; white-space: normal; vertical-align: top; }
@media print { body { max-width: none; font-size: 11px; } img { max-height: 18cm; } }
"""
TITLE = "The paper's tables and figures, run here"
NOT_RUN = "not run here"
NAMED = 6
"""Number of missing rows that are named; the others are counted."""
SHORT = 15
"""Number of lines up to which a table is open at first."""
COLUMNS = (
    *("experiment", "the paper's data", "run here on", "result", "network", "images", "training", "seeds"),
    *("test", "training time", "rows"),
)
READING = " ".join(
    [
        f"How to read the tables. With one seed: {ONE_SEED} With several: {SEVERAL_SEEDS}",
        ABOUT.format(paired="episode, or by training"),
        *BEFORE.values(),
        "The interval of a bold gain excludes zero.",
        "Intervals of one training understate what another seed would change.",
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
    sections = read_sections(folder)
    of_paper = [each for each in sections if each.experiment is not None and each.experiment.is_of_paper]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{TITLE}</title><style>{PAGE_STYLE}{STYLE}</style></head><body>",
        f"<h1>{TITLE}</h1>",
        "<p>Hiller, Harandi and Drummond, “On Enforcing Better Conditioned Meta-Learning for Rapid Few-Shot "
        "Adaptation”, NeurIPS 2022: every table and figure in its order, our runs beside the printed "
        f"numbers; then experiments that the paper does not have. {_escape(_counts(sections))}</p>",
        "<h2>What exists</h2>",
        f'<div class="wide">{_summary(sections)}</div>',
        f"<p>{_escape(READING)}</p>",
        *(_section(each, 2) for each in of_paper),
        "<h2>Not in the paper</h2>",
        *(_section(each, 3) for each in sections if each not in of_paper),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _counts(sections: Sequence[Section]) -> str:
    results = [saved for section in sections for saved in section.results]
    absent = [section.name for section in sections if not section.results]
    several = sum(len(saved.record.seeds) > 1 for saved in results)
    return (
        f"{len(results)} results of {len(sections) - len(absent)} of {len(sections)} experiments; {several} "
        f"of them with several training seeds. {NOT_RUN.capitalize()}: {', '.join(absent) or 'none'}."
    )


def _summary(sections: Sequence[Section]) -> str:
    """Return a table with a line per result, and one per experiment without a result."""
    lines = [_line("th", COLUMNS)]
    for section in sections:
        data = ", ".join(section.experiment.datasets) if section.experiment is not None else ""
        if not section.results:
            lines.append(_line("td", [section.name, data, NOT_RUN], section.name, "absent"))
        for saved in section.results:
            b = budget_of(saved.record, saved.cells)
            rows = f"{len(rows_run(saved))} of {max(len(rows_of(saved)), len(section.labels))}"
            texts = [
                *(section.name, data, b.data, saved.folder.name, b.networks, b.images, b.training),
                *(_seeds(saved.record), b.test, b.time, rows),
            ]
            lines.append(_line("td", texts, _anchor(saved)))
    return f'<table class="summary">{"".join(lines)}</table>'


def _line(tag: str, texts: Sequence[str], anchor: str = "", kind: str = "") -> str:
    first, *others = map(html.escape, texts)
    cells = [f'<a href="#{html.escape(anchor)}">{first}</a>' if anchor else first, *others]
    row = "".join(f'<{tag} class="text {kind}">{cell}</{tag}>' for cell in cells)
    return f"<tr>{row}</tr>\n"


def _anchor(saved: SavedResult) -> str:
    return f"{saved.record.experiment}-{saved.folder.name}"


def _seeds(record: ResultRecord) -> str:
    return f"{len(record.seeds)} ({', '.join(map(str, record.seeds))})"


def _section(section: Section, level: int) -> str:
    experiment = section.experiment
    title = section.results[0].record.title if experiment is None else experiment.title
    parts = [f'<h{level} id="{html.escape(section.name)}">{_escape(title)}</h{level}>']
    for saved in section.results:
        parts += [*_result(saved, title, level + 1), *_missing(NOT_RUN, section.gaps(saved))]
    if experiment is not None and not section.results:
        parts.append(f'<p class="absent">{NOT_RUN.capitalize()}.</p>')
        if experiment.is_of_paper:
            table = _printed(experiment)
            is_open = " open" if len(table.rows) <= SHORT else ""
            parts += [_figure_of_paper(experiment), _details("The paper's numbers", _wide(table), is_open)]
    elif experiment is not None:
        absent = section.absent
        what = f"{NOT_RUN}, of the rows that the experiment has now"
        parts += _missing(what, absent, _printed(experiment, only=absent))
    return "\n".join(parts)


def _result(saved: SavedResult, title: str, level: int) -> list[str]:
    record, cells, figure = saved.record, saved.cells, saved.figure
    found = [conclusion(record, cells), describe_stand_in(record.stand_in), record.definition, record.note]
    made = html.escape("\n".join(f"{name}: {text}" for name, text in how_it_was_made(record, cells).items()))
    table = build_table(record.table, cells, len(record.seeds), only=rows_run(saved), highlight=True)
    several = len(record.seeds) > 1
    over = "trainings" if several else "test episodes"
    trained = f"training seed{'s' * several} {_seeds(record)}, intervals over {over}"
    name = saved.folder.name + ("" if record.title == title else f": {record.title}")
    return [
        f'<h{level} id="{html.escape(_anchor(saved))}">{_escape(name)}</h{level}>',
        f"<p><b>{_escape(str(budget_of(record, cells)))}; {_escape(trained)}.</b></p>",
        f"<p>{' '.join(_escape(_sentence(text)) for text in found if text)}</p>",
        embed_png(figure.read_bytes(), html.escape(record.title)) if figure is not None else "",
        _wide(_without_empty_columns(table)),
        _details("How it was made", f"<pre>{made}</pre>"),
    ]


def _missing(what: str, gaps: Sequence[str], printed: Table | None = None) -> list[str]:
    """Return the first gaps by name and the number of the others, with the paper's numbers folded in."""
    if not gaps:
        return []
    more = f"; and {len(gaps) - NAMED} more" if len(gaps) > NAMED else ""
    start = f"<b>{what.capitalize()} ({len(gaps)})</b>: {_escape('; '.join(gaps[:NAMED]) + more)}."
    if printed is not None and printed.rows:
        return [_details(start, f"<p>The paper prints:</p>{_wide(printed)}")]
    return [_details(start, f"<p>{_escape('; '.join(gaps))}.</p>") if more else f"<p>{start}</p>"]


def _printed(experiment: Experiment, only: Collection[str] | None = None) -> Table:
    """Return the paper's numbers for these rows, or for all."""
    cells = beside_paper(_accuracies_of_paper(experiment))
    table = build_table(layout_of(experiment, (), cells), cells, lines=PRINTED, only=only)
    return _without_empty_columns(table)


def _accuracies_of_paper(experiment: Experiment) -> pd.DataFrame:
    over = {row.label: row.over for row in experiment.rows if row.over is not None}
    return accuracy_frame(tidy([], seed_columns()), experiment.paper, over, seeds=1)


def _figure_of_paper(experiment: Experiment) -> str:
    if experiment.figure is None:
        return ""
    draw, numbers = FIGURES[experiment.figure], _accuracies_of_paper(experiment)
    figure = draw(numbers, tidy([], HISTORIES), NOT_RUN, "The paper's numbers alone.")
    # The paper has no table of its curves during training.
    return embed_figure(figure) if any(axes.lines for axes in figure.axes) else ""


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


def _wide(table: Table) -> str:
    return f'<div class="wide">{table.to_html()}</div>'


def _details(summary: str, inside: str, is_open: str = "") -> str:
    return f"<details{is_open}><summary>{summary}</summary>{inside}</details>"


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _escape(text: str) -> str:
    return html.escape(text.replace("`", ""))
