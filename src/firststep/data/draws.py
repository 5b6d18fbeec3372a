"""Random draws that are a pure function of their purpose.

numpy guarantees the raw bits of a bit generator across versions, but not what ``Generator`` computes from
them. Only raw bits are used here, so the draws are the same on every machine and with every numpy.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np


class Draws:
    """A stream of draws named by an identity, e.g. ``Draws("episode", "glyphs", "test", 5, 17)``."""

    def __init__(self, *identity: str | int) -> None:
        # JSON keeps ("a", 1) and ("a1",) apart; blake2b spreads neighbouring seeds far apart.
        name = json.dumps(identity, ensure_ascii=True).encode()
        key = hashlib.blake2b(name, digest_size=16).digest()
        self._bits = np.random.Philox(key=np.frombuffer(key, dtype="<u8").astype(np.uint64))

    def uniform(self, count: int) -> np.ndarray:
        """Return ``count`` float64 in [0, 1), each a multiple of 2⁻⁵³, so exact and equal everywhere."""
        return (self._bits.random_raw(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * float(self.uniform(1)[0])

    def below(self, limit: int) -> int:
        """Return an integer in [0, limit). The bias, limit·2⁻⁶⁴, is negligible."""
        return int(self._bits.random_raw()) * limit >> 64

    def distinct(self, count: int, population: int) -> list[int]:
        """Return ``count`` different integers in [0, population) in random order, by a partial shuffle."""
        if count > population:
            raise ValueError(f"cannot draw {count} different items of {population}")
        # As in ``below``, but vectorised; 32 bits are enough for the size of any class.
        raw: np.ndarray = self._bits.random_raw(count) >> np.uint64(32)
        limits = np.arange(population, population - count, -1, dtype=np.uint64)
        steps: np.ndarray = (raw * limits) >> np.uint64(32)
        moved: dict[int, int] = {}  # positions of the shuffled list that no longer hold their own number
        chosen = []
        for place, step in enumerate(steps.tolist()):
            other = place + step
            chosen.append(moved.get(other, other))
            moved[other] = moved.get(place, place)
        return chosen
