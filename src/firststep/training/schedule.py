"""The outer learning rate of every meta-update."""

from __future__ import annotations

import math

SCHEDULES = ("constant", "cosine")


def scheduled_rate(rate: float, schedule: str, update: int, *, total: int, warmup: int = 0) -> float:
    """Return the rate of meta-update ``update`` (from 0) of ``total``.

    The rate rises linearly over the first ``warmup`` updates, and update ``warmup - 1`` uses the full
    ``rate``. Then ``cosine`` decreases along half a cosine that reaches 0 just after the last update.
    """
    if update < warmup:
        return rate * (update + 1) / warmup
    if schedule == "constant":
        return rate
    return rate * 0.5 * (1 + math.cos(math.pi * (update - warmup) / (total - warmup)))
