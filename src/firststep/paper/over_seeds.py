"""Means and intervals over the trainings of a row, one per seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from firststep.evaluation import METRICS, metrics_of

LEVEL = 0.95


def is_geometric(quantity: str) -> bool:
    """Return whether the geometric mean is taken: the quantity spreads over orders of magnitude."""
    name = quantity.removesuffix("_all")
    return name in METRICS and METRICS[name].log10


def student_half_width(values: Sequence[float] | np.ndarray) -> float:
    """Return t · std / sqrt(n) with Student's t of n - 1 degrees of freedom; NaN for one value."""
    found = np.asarray(values, dtype=float)
    if len(found) < 2:
        return math.nan
    return float(student_quantile(len(found) - 1) * found.std(ddof=1) / math.sqrt(len(found)))


@cache
def student_quantile(degrees: int, level: float = LEVEL) -> float:
    """Find t with P(|T| <= t) = ``level`` by bisection: 12.706 for one degree of freedom, 1.96 for many."""
    low, high = 0.0, 1.0
    while _inside(high, degrees) < level:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _inside(middle, degrees) < level else (low, middle)
    return high


def _inside(t: float, degrees: int) -> float:
    """Return P(|T| <= t), a finite sum for integer degrees (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    odd = degrees % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for k in range(1 + odd, degrees, 2):
        total += term
        term *= math.cos(angle) ** 2 * k / (k + 1)
    share = math.sin(angle) * total
    return 2 / math.pi * (angle + share) if odd else share


def mean_over_seeds(by_seed: pd.DataFrame, cell: list[str], asked: int) -> pd.DataFrame:
    """Return a line per cell: the mean over its trainings, and their number.

    Args:
        by_seed: a line per cell and seed, with intervals over the episodes.
        cell: the columns that identify a cell.
        asked: number of seeds that were asked for. With one, lines stay as they are. With more, intervals
            are over the trainings, and a cell with a single training has no interval.
    """
    if asked == 1:
        gains = by_seed["gain"].notna().astype(int)
        return by_seed.drop(columns="seed").assign(seeds=1, gain_seeds=gains)
    lines = [_mean(group) for _, group in by_seed.groupby(cell, sort=False, dropna=False)]
    return pd.DataFrame(lines)


def _mean(group: pd.DataFrame) -> dict[str, Any]:
    gains = group["gain"].dropna()
    line: dict[str, Any] = group.iloc[0].drop("seed").to_dict()
    for name in metrics_of("classes"):
        if name != "accuracy" and name in group:
            line[name] = mean_of(name, group[name])
        if f"{name}_ci95" in group:
            line[f"{name}_ci95"] = student_half_width(group[name])
    return {
        **line,
        "seeds": len(group),
        "accuracy": group["accuracy"].mean(),
        "ci95": student_half_width(group["accuracy"]),
        "over": next((name for name in group["over"] if name), ""),
        "gain_seeds": len(gains),
        "gain": gains.mean() if len(gains) else math.nan,
        "gain_ci95": student_half_width(gains),
    }


def mean_of(quantity: str, values: pd.Series) -> float:
    """Return the mean, geometric for condition numbers."""
    if not is_geometric(quantity):
        return float(values.mean())
    return float(10 ** np.log10(values).mean())


def logs_over_seeds(by_seed: pd.DataFrame, model: list[str]) -> pd.DataFrame:
    """Return the mean of what a row's trainings logged, with the Student-t band of two or more."""
    keys = [*model, "update", "split", "quantity", "index"]
    geometric = by_seed["quantity"].map(is_geometric).astype(bool)
    values = by_seed["value"].where(~geometric, np.log10(by_seed["value"].where(geometric)))
    groups = by_seed.assign(value=values).groupby(keys, sort=False, dropna=False)["value"]
    frame = groups.agg(["mean", "std", "count"]).reset_index()
    quantiles = [student_quantile(n - 1) if n > 1 else math.nan for n in frame["count"]]
    width = quantiles * frame["std"] / np.sqrt(frame["count"])
    ends = {"value": frame["mean"], "low": frame["mean"] - width, "high": frame["mean"] + width}
    geometric = frame["quantity"].map(is_geometric).astype(bool)
    restored = {name: end.where(~geometric, 10 ** end.where(geometric)) for name, end in ends.items()}
    return frame[keys].assign(**restored)
