"""Limits of one request, and of all requests together."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from firststep.adaptation import LONGEST_AUTO
from firststep.utils import available_cores

MOST_AT_ONCE = 4
"""Largest number of simultaneous adaptations: the page has one user, and each adaptation copies the model."""


@dataclass(frozen=True)
class Limits:
    classes: int = 20
    examples: int = 200
    """Over all classes."""
    queries: int = 100
    files: int = 64
    """Pictures in one upload."""
    upload_bytes: int = 64 * 2**20
    """Size of one request. The browser sends all pictures with every change: 300 of 260 pixels take 50 MB."""
    upload_pixels: int = 50_000_000
    """Size of one picture: a large telephone photograph has 48 million."""
    steps: int = LONGEST_AUTO
    at_once: int = field(default_factory=lambda: min(MOST_AT_ONCE, available_cores()))
    """Number of simultaneous adaptations; others wait."""
    waiting: int = 128
    """Number of requests that may wait; further ones are refused."""
    name_length: int = 200
    seconds_to_upload: float = 60.0

    def describe(self) -> dict[str, int | float]:
        """Return the limits for the browser."""
        return asdict(self)
