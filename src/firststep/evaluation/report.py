"""One self-contained HTML page about a comparison."""

from __future__ import annotations

import html
from collections.abc import Sequence

from firststep.evaluation.comparison import distinct_labels, initial_condition, paired_differences
from firststep.evaluation.evaluate import Evaluation
from firststep.evaluation.figures import Metrics, comparison_figure, embedded

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222;
  max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .35rem .7rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.clear { font-weight: 600; } .muted { color: #666; } img { max-width: 100%; }
pre { background: #f6f6f6; padding: .8rem; white-space: pre-wrap; font-size: .8rem; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; } pre { background: #222; }
  th, td { border-color: #444; } .muted { color: #999; } img { background: #fff; } }
"""


def report(evaluations: Sequence[Evaluation], metrics: Sequence[Metrics], title: str) -> str:
    """The page: tables of accuracies and paired differences, pictures, and how it was measured."""
    settings = evaluations[0].settings
    where = (
        f"{settings['data']}, {settings['split']} split, {settings['ways']}-way {settings['shots']}-shot, "
        f"{settings['queries']} queries a class, {settings['episodes']} episodes (seed {settings['seed']})"
    )
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{html.escape(where)}. Accuracy in per cent with 95 % half-width.</p>",
        '<div class="wide">' + _accuracies(evaluations) + "</div>",
    ]
    if len(evaluations) > 1:
        parts += [
            "<h2>Paired differences</h2>",
            "<p>All models saw the same episodes, so the differences are taken episode by episode; "
            "bold where the 95 % interval leaves out zero.</p>",
            '<div class="wide">' + _differences(evaluations) + "</div>",
        ]
    parts += ["<h2>Pictures</h2>", embedded(comparison_figure(evaluations, metrics))]
    parts.append("<h2>How it was made</h2>")
    for label, evaluation in zip(distinct_labels(list(evaluations)), evaluations, strict=True):
        config = ", ".join(f"{name}={value}" for name, value in evaluation.origin["config"].items())
        versions = f"firststep {evaluation.origin['firststep']}, torch {evaluation.origin['torch']}"
        parts.append(
            f"<p><b>{html.escape(label)}</b>, run <code>{html.escape(evaluation.run)}</code>, meta-update "
            f"{evaluation.origin['update']}, {html.escape(versions)}</p><pre>{html.escape(config)}</pre>"
        )
    parts.append(f'<p class="muted">Data fingerprint {settings["data_fingerprint"]}.</p></body></html>')
    return "\n".join(parts) + "\n"


def _row(cells: Sequence[str], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _accuracies(evaluations: Sequence[Evaluation]) -> str:
    steps = [row["step"] for row in evaluations[0].rows()]
    lines = [_row(["model", *(f"step {step}" for step in steps), "condition number"], "th")]
    for label, evaluation in zip(distinct_labels(list(evaluations)), evaluations, strict=True):
        by_step = {row["step"]: row for row in evaluation.rows()}
        cells = [
            f"{by_step[s]['accuracy']:.2f} ± {by_step[s]['ci95']:.2f}" if s in by_step else "–" for s in steps
        ]
        lines.append(_row([html.escape(label), *cells, initial_condition(evaluation)]))
    return f"<table>{''.join(lines)}</table>"


def _differences(evaluations: Sequence[Evaluation]) -> str:
    labels = distinct_labels(list(evaluations))
    pairs = [paired_differences(evaluations[0], other) for other in evaluations[1:]]
    steps = sorted({d.step for pair in pairs for d in pair})
    lines = [_row(["difference", *(f"step {step}" for step in steps)], "th")]
    for label, pair in zip(labels[1:], pairs, strict=True):
        by_step = {d.step: d for d in pair}
        cells = []
        for step in steps:
            d = by_step.get(step)
            text = "–" if d is None else f"{d.difference:+.2f} ± {d.ci95:.2f}"
            cells.append(f'<span class="clear">{text}</span>' if d is not None and d.is_clear else text)
        lines.append(_row([f"{html.escape(label)} − {html.escape(labels[0])}", *cells]))
    return f"<table>{''.join(lines)}</table>"
