"""How much one request, and all of them together, may ask for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from firststep.adaptation import LONGEST_AUTO
from firststep.utils import available_cores

MOST_AT_ONCE = 4
"""Adaptations at once on a large machine: one person looks at the page, and each model keeps a copy."""


@dataclass(frozen=True)
class Limits:
    classes: int = 20
    examples: int = 200
    """Of all classes together."""
    queries: int = 100
    files: int = 64
    """Pictures in one upload."""
    upload_bytes: int = 32 * 2**20
    """Of one request, whatever is in it."""
    upload_pixels: int = 50_000_000
    """Of one picture: a large photograph of a telephone has 48 million."""
    steps: int = LONGEST_AUTO
    at_once: int = field(default_factory=lambda: min(MOST_AT_ONCE, available_cores()))
    """Adaptations at once; others wait."""
    waiting: int = 128
    """Requests that may wait; further ones are refused."""
    name_length: int = 200
    seconds_to_upload: float = 60.0

    def describe(self) -> dict[str, int | float]:
        """What the browser is told."""
        return asdict(self)
