"""Several trainings of the same row, told apart by their seeds, as one number with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

LEVEL = 0.95
GEOMETRIC = ("condition_number", "condition_number_all")
"""Quantities that spread over orders of magnitude: their logarithms are averaged."""


def student_half_width(values: Sequence[float] | np.ndarray) -> float:
    """t · std / sqrt(n) with Student's t of n - 1 degrees of freedom; NaN for less than two values."""
    found = np.asarray(values, dtype=float)
    if len(found) < 2:
        return math.nan
    return float(student_quantile(len(found) - 1) * found.std(ddof=1) / math.sqrt(len(found)))


@cache
def student_quantile(degrees: int, level: float = LEVEL) -> float:
    """The t with P(|T| <= t) = ``level``, by bisection; 12.706 for one degree of freedom, 1.96 for many."""
    low, high = 0.0, 1.0
    while _inside(high, degrees) < level:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _inside(middle, degrees) < level else (low, middle)
    return high


def _inside(t: float, degrees: int) -> float:
    """P(|T| <= t), a finite sum for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    odd = degrees % 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for k in range(1 + odd, degrees, 2):
        total += term
        term *= math.cos(angle) ** 2 * k / (k + 1)
    share = math.sin(angle) * total
    return 2 / math.pi * (angle + share) if odd else share


def mean_over_seeds(by_seed: pd.DataFrame, cell: list[str], asked: int) -> pd.DataFrame:
    """A line for each cell: the mean over its trainings, and how many there are.

    Args:
        by_seed: a line for each cell and seed, with interval over the episodes.
        cell: the columns that say which numbers are about the same.
        asked: how many seeds were asked for. With one, lines stay as they are. With more, intervals are over
            the trainings; a cell that has only one as yet has none.
    """
    if asked == 1:
        gains = by_seed["gain"].notna().astype(int)
        return by_seed.drop(columns="seed").assign(seeds=1, gain_seeds=gains)
    lines = [_mean(group) for _, group in by_seed.groupby(cell, sort=False, dropna=False)]
    return pd.DataFrame(lines)


def _mean(group: pd.DataFrame) -> dict[str, Any]:
    gains = group["gain"].dropna()
    line: dict[str, Any] = group.iloc[0].drop("seed").to_dict()
    for name in ("condition_number", "rank", "support_loss", "largest_share", "class_offset"):
        line[name] = mean_of(name, group[name])
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
    if quantity not in GEOMETRIC:
        return float(values.mean())
    return float(10 ** np.log10(values).mean())


def logs_over_seeds(by_seed: pd.DataFrame, model: list[str]) -> pd.DataFrame:
    """What the trainings of a row logged: mean, and a band of the Student-t interval where there are two."""
    keys = [*model, "update", "split", "quantity", "index"]
    geometric = by_seed["quantity"].isin(GEOMETRIC)
    values = by_seed["value"].where(~geometric, np.log10(by_seed["value"].where(geometric)))
    groups = by_seed.assign(value=values).groupby(keys, sort=False, dropna=False)["value"]
    frame = groups.agg(["mean", "std", "count"]).reset_index()
    quantiles = [student_quantile(n - 1) if n > 1 else math.nan for n in frame["count"]]
    width = quantiles * frame["std"] / np.sqrt(frame["count"])
    ends = {"value": frame["mean"], "low": frame["mean"] - width, "high": frame["mean"] + width}
    geometric = frame["quantity"].isin(GEOMETRIC)
    restored = {name: end.where(~geometric, 10 ** end.where(geometric)) for name, end in ends.items()}
    return frame[keys].assign(**restored)
