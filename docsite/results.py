"""The numbers of results/ and benchmarks/, read from the files that the commands wrote."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docsite.paths import ROOT

RESULTS = ROOT / "results"
Row = dict[str, str]


def read_csv(path: Path) -> list[Row]:
    """The lines of a table; those with ``#`` say how it was made."""
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def numbers(folder: str) -> list[Row]:
    """Of an experiment's folder, such as ``table2/glyphs-conv4-16``: steps of the trained length."""
    rows = read_csv(RESULTS / folder / "numbers.csv")
    return [row for row in rows if row["rate_multiplier"] == "1.0" and row["accuracy"]]


def cell(row: Row, value: str = "accuracy", width: str = "ci95", *, sign: bool = False) -> str:
    """A number with its half-width; alone where there is none, because it is of one training among seeds."""
    number = f"{float(row[value]):+.1f}" if sign else f"{float(row[value]):.1f}"
    return f"{number} ± {float(row[width]):.1f}" if row[width] else number


@cache
def intervals() -> dict[str, set[tuple[float, float]]]:
    """Every number with its half-width in results/: file → pairs."""
    found: dict[str, set[tuple[float, float]]] = {}
    for path in sorted(RESULTS.rglob("*.csv")):
        pairs = found.setdefault(str(path.relative_to(ROOT)), set())
        for row in read_csv(path):
            for name, text in row.items():
                width = row.get("ci95" if name == "accuracy" else f"{name}_ci95")
                if text and width:
                    pairs.add((float(text), float(width)))
    return found


def benchmarks() -> Iterator[dict[str, Any]]:
    """The medians of every measured setting."""
    content = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    for section in content["sections"].values():
        yield section["medians"]


def over_the_floor() -> dict[str, float]:
    """Medians of the time over the floor, by network, contender and whether freed memory was kept."""
    content = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    return {case: found["median"] for case, found in content["over the floor"].items()}


def benchmark(network: str, steps: int, *contenders: str) -> dict[str, Any]:
    """The first setting of a network and number of steps that has all these contenders."""
    for medians in benchmarks():
        if (
            medians["network"] == network
            and medians["steps"] == steps
            and set(contenders) <= set(medians["seconds"])
        ):
            return medians
    raise LookupError(f"benchmarks/results.json has no {network}, {steps} steps, with {contenders}")
