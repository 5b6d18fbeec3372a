"""The generated parts of pages, by name."""

from __future__ import annotations

import inspect

from docsite import packages, pipeline, results_index, speed_tables
from docsite.blocks import Generator
from docsite.results import RESULTS, Row, cell, numbers, read_csv
from firststep import build_backbone, build_method
from firststep.data import DATASETS
from firststep.evaluation import METRICS
from firststep.methods import count_parameters
from firststep.utils.table import Cell, Table


def accuracies(folder: str, *steps: str) -> str:
    """Return a line per row of an experiment with a column per step."""
    rows: dict[str, dict[str, Row]] = {}
    for row in numbers(folder):
        rows.setdefault(row["row"], {})[row["step"]] = row
    table = Table(["", *(f"step {step}" for step in steps)])
    for label, by_step in rows.items():
        table.add_row(label, *(cell(by_step[step]) if step in by_step else "–" for step in steps))
    return table.to_markdown()


def pair(folder: str, *steps: str) -> str:
    """Return the first model of an experiment, the one compared with it, and their paired difference."""
    rows = {(row["row"], row["step"]): row for row in numbers(folder)}
    (second,) = {row["row"] for row in rows.values() if row["gain_over"] and row["step"] == steps[0]}
    first = rows[second, steps[0]]["gain_over"]
    table = Table(["accuracy in % after steps", *steps])
    table.add_row("MAML", *(cell(rows[first, step]) for step in steps))
    table.add_row("+ conditioning", *(Cell(cell(rows[second, step]), bold=True) for step in steps))
    gains = [cell(rows[second, step], "gain", "gain_ci95", sign=True) for step in steps]
    table.add_row("paired difference", *gains)
    return table.to_markdown()


def shipped(*steps: str) -> str:
    """Return the three models that come with firststep."""
    folder = RESULTS / "compare" / "glyphs-shipped-pair"
    lines = {"maml": "MAML", "maml + conditioning": "+ conditioning loss, the paper's"}
    models: dict[str, list[Row]] = {}
    for row in read_csv(folder / "comparison.csv"):
        if row["model"] in lines:
            models.setdefault(lines[row["model"]], []).append(row)
    models["+ conditioning loss + shared head"] = read_csv(folder / "shared-head.csv")
    table = Table(
        [
            "accuracy in % after",
            *(f"{step} steps" if step != "1" else "1 step" for step in steps),
            "condition number",
        ]
    )
    best = {
        step: max(float(row["accuracy"]) for rows in models.values() for row in rows if row["step"] == step)
        for step in steps
    }
    for label, rows in models.items():
        by_step = {row["step"]: row for row in rows}
        cells = [
            Cell(cell(by_step[step]), float(by_step[step]["accuracy"]) == best[step] and step != "0")
            for step in steps
        ]
        kappa = float(by_step["0"]["condition_number"])
        table.add_row(label, *cells, f"{round(kappa, -3 if kappa > 1000 else None):,.0f}")
    return table.to_markdown()


def demo(*steps: str) -> str:
    """Return the models that the demo trains, over its seeds."""
    lines = {
        "maml": "MAML",
        "maml + conditioning": "+ conditioning loss",
        "maml, shared head + conditioning": "+ conditioning loss + shared head",
    }
    rows = {(r["model"], r["step"]): r for r in read_csv(RESULTS / "compare" / "demo-seeds" / "numbers.csv")}
    columns = (f"after {step} step{'s' * (step != '1')}" for step in steps)
    table = Table(["", *(text for name in columns for text in (f"accuracy {name}", "gain", "smallest gain"))])
    for model, label in lines.items():
        cells = []
        for row in (rows[model, step] for step in steps):
            cells.append(cell(row))
            if row["gain"]:
                cells += [cell(row, "gain", "gain_ci95", sign=True), f"{float(row['smallest_gain']):+.1f}"]
            else:  # MAML itself
                cells += ["", ""]
        table.add_row(label, *cells)
    return table.to_markdown()


def added(name: str) -> int:
    """Return the parameters that a method adds to Conv4-64 for 5-way tasks of 84 px."""
    return count_parameters(build_method(name), build_backbone("conv4", filters=64)).added


RIVALS = "rivals/cifar-fs-conv4-32-pretrained"


def method(name: str) -> str:
    """Return what a method adds, and its rows of our comparison: plain, with the loss, with a shared head."""
    count = f"**Added to Conv4-64** (5-way, 84 px): {added(name):,} parameters."
    rows = {(row["row"], row["step"]): row for row in numbers(RIVALS)}
    page = f"[our comparison](../results/{RIVALS}/README.md)"
    if (name, "1") not in rows:
        return f"{count} It is not in the committed run of {page}."
    table = Table([f"{page}: CIFAR-FS, 5-way 5-shot, %", "1 step", "5 steps"])
    for label in (name, f"{name} + conditioning", f"{name}, shared head"):
        if (label, "1") not in rows:
            continue
        table.add_row(label, cell(rows[label, "1"]), cell(rows[label, "5"]))
        if label != name:
            gains = [cell(rows[label, step], "gain", "gain_ci95", sign=True) for step in ("1", "5")]
            table.add_row("gain, paired by episode", *gains)
    return f"{count}\n\n{table.to_markdown()}"


def datasets() -> str:
    """Return a line per dataset: its classes and the layouts that are read."""
    lines = ["| name | classes of train / val / test | layouts that are read |", "|---|---|---|"]
    for info in DATASETS.values():
        layouts = "; ".join(f"`{layout.what}`" for layout in info.layouts)
        lines.append(f"| {info.name} | {info.splits} | {layouts or 'none: the images are drawn'} |")
    return "\n".join(lines)


def metrics() -> str:
    """Return one row per registered metric: its column, its title and its docstring's first line."""
    table = Table(["column", "title in tables", "meaning"], left_aligned=3)
    for name, metric in METRICS.items():
        meaning = (inspect.getdoc(metric.compute) or "").partition("\n")[0]
        title = f"{metric.title} %" if metric.percent else metric.title
        table.add_row(f"`{name}`", title, meaning)
    return table.to_markdown()


GENERATORS: dict[str, Generator] = {
    "accuracies": accuracies,
    "pair": pair,
    "shipped": shipped,
    "demo": demo,
    "speed": speed_tables.sentence,
    "speed-main": speed_tables.main_setting,
    "speed-settings": speed_tables.other_settings,
    "speed-subsets": speed_tables.subsets,
    "speed-bounds": speed_tables.bounds,
    "passes": pipeline.table,
    "packages": packages.table,
    "method": method,
    "datasets": datasets,
    "gains": results_index.gains,
    "starts": results_index.starts,
    "subsets": results_index.subsets,
    "bigger-steps": results_index.bigger_steps,
    "methods": results_index.methods,
    "metrics": metrics,
}
