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
    """Return the lines of a table, without those with ``#``, which say how it was made."""
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def numbers(folder: str) -> list[Row]:
    """Return the numbers of a folder such as ``table2/glyphs-conv4-16``, at the trained rate."""
    rows = read_csv(RESULTS / folder / "numbers.csv")
    return [row for row in rows if row["rate_multiplier"] == "1.0" and row["accuracy"]]


def cell(row: Row, value: str = "accuracy", width: str = "ci95", *, sign: bool = False) -> str:
    """Return a number with its half-width, or alone if there is none."""
    number = f"{float(row[value]):+.1f}" if sign else f"{float(row[value]):.1f}"
    return f"{number} ± {float(row[width]):.1f}" if row[width] else number


@cache
def intervals() -> dict[str, set[tuple[float, float]]]:
    """Return every number with its half-width in results/: file → pairs."""
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
    """Yield the medians of every measured setting."""
    content = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    for section in content["sections"].values():
        yield section["medians"]


def over_the_floor() -> dict[str, float]:
    """Return medians of the time over the floor, by network, contender and whether freed memory was kept."""
    content = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    return {case: found["median"] for case, found in content["over the floor"].items()}


def benchmark(network: str, steps: int, *contenders: str) -> dict[str, Any]:
    """Return the first setting of a network and number of steps that has all these contenders."""
    for medians in benchmarks():
        if (
            medians["network"] == network
            and medians["steps"] == steps
            and set(contenders) <= set(medians["seconds"])
        ):
            return medians
    raise LookupError(f"benchmarks/results.json has no {network}, {steps} steps, with {contenders}")
