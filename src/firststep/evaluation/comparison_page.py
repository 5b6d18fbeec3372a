"""A comparison as one self-contained HTML page."""

from __future__ import annotations

import html
from collections.abc import Sequence

from firststep.evaluation.comparison import comparison_table, describe_test, distinct_labels
from firststep.evaluation.evaluation import Evaluation
from firststep.evaluation.figures import Metrics, comparison_figure
from firststep.evaluation.page_style import PAGE_STYLE
from firststep.plotting import embed_figure


def html_report(evaluations: Sequence[Evaluation], metrics: Sequence[Metrics], title: str) -> str:
    """Return an HTML page with accuracies, paired differences, figures and provenance.

    Examples:
        >>> from firststep.evaluation import html_report
        >>> page = html_report([evaluation], [run.metrics()], "My run")
        >>> page.startswith("<!doctype html>")
        True
    """
    first, settings = evaluations[0], evaluations[0].settings
    where = (
        f"{describe_test(first)} (seed {settings.seed}), "
        f"{settings.queries} queries{' per class' if first.kind == 'classes' else ''}"
    )
    metric = first.main_metric
    shown = f"{metric.title[0].upper()}{metric.title[1:]}{' in per cent' if metric.percent else ''}"
    better = "" if metric.higher_is_better else "; lower is better"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title><style>{PAGE_STYLE}</style></head><body>",
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{html.escape(where)}. {html.escape(shown)} with 95 % half-width{better}.</p>",
        '<div class="wide">' + comparison_table(list(evaluations)).to_html() + "</div>",
    ]
    if len(evaluations) > 1:
        parts.append(
            "<p>All models saw the same episodes, so differences are paired by episode. "
            "A difference is bold if its 95 % interval excludes zero.</p>"
        )
    parts += ["<h2>Figures</h2>", embed_figure(comparison_figure(evaluations, metrics))]
    parts.append("<h2>How it was made</h2>")
    for label, evaluation in zip(distinct_labels(list(evaluations)), evaluations, strict=True):
        config = ", ".join(f"{name}={value}" for name, value in evaluation.provenance["config"].items())
        versions = f"firststep {evaluation.provenance['firststep']}, torch {evaluation.provenance['torch']}"
        parts.append(
            f"<p><b>{html.escape(label)}</b>, run <code>{html.escape(evaluation.run)}</code>, meta-update "
            f"{evaluation.provenance['update']}, {html.escape(versions)}</p><pre>{html.escape(config)}</pre>"
        )
    parts.append(f'<p class="muted">Data fingerprint {first.data_fingerprint}.</p></body></html>')
    return "\n".join(parts) + "\n"
