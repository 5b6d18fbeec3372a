"""An experiment's results as a table: what exists, beside gaps that are marked."""

from __future__ import annotations

import pandas as pd

from firststep.evaluation.comparison import paired_differences
from firststep.evaluation.evaluate import Evaluation
from firststep.paper.experiments import Experiment

MISSING = "missing"


def results_table(experiment: Experiment, results: dict[str, Evaluation | None]) -> pd.DataFrame:
    """A row for each run: accuracies with half-width at each step, condition number before the first."""
    rows = []
    for name, evaluation in results.items():
        row: dict[str, str] = {"method": name}
        by_step = {} if evaluation is None else {r["step"]: r for r in evaluation.rows()}
        for step in experiment.steps:
            cell = by_step.get(step)
            row[f"step {step}"] = MISSING if cell is None else f"{cell['accuracy']:.1f} ± {cell['ci95']:.1f}"
        start = by_step.get(0)
        row["condition number"] = MISSING if start is None else f"{start['condition_number']:.3g}"
        plain = results.get(name.removesuffix(" + conditioning"))
        for step in experiment.steps[1:]:
            row[f"gain at step {step}"] = _gain(plain, evaluation, step)
        rows.append(row)
    return pd.DataFrame(rows)


def _gain(plain: Evaluation | None, evaluation: Evaluation | None, step: int) -> str:
    """Paired difference to the same method without conditioning; empty for that one itself."""
    if plain is None or evaluation is None or plain is evaluation:
        return ""
    difference = next(d for d in paired_differences(plain, evaluation) if d.step == step)
    return f"{difference.difference:+.1f} ± {difference.ci95:.1f}"


def markdown(experiment: Experiment, results: dict[str, Evaluation | None], command: str) -> str:
    """The page that is kept under results/."""
    table = results_table(experiment, results)
    lines = [
        f"# {experiment.title}",
        "",
        f"Test accuracy in per cent with 95 % half-width over {experiment.episodes} episodes, the same for "
        "all; gains are paired differences to the same method without the loss. " + experiment.note,
        "",
        "| " + " | ".join(table.columns) + " |",
        "|---" * len(table.columns) + "|",
        *("| " + " | ".join(row) + " |" for row in table.itertuples(index=False)),
        "",
        f"Made by `{command}`.",
    ]
    some = next((e for e in results.values() if e is not None), None)
    if some is not None:
        config = ", ".join(
            f"{k}={v}"
            for k, v in some.origin["config"].items()
            if k not in ("method", "conditioning", "rate")
        )
        lines += [
            "",
            f"firststep {some.origin['firststep']}, torch {some.origin['torch']}, data fingerprint "
            f"{some.settings['data_fingerprint']}, test seed {some.settings['seed']}. Settings: {config}.",
        ]
    return "\n".join(lines) + "\n"
