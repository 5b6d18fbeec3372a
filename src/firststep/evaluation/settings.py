"""The settings of a test, from the command line to the file of its result."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from firststep.errors import FirststepError

DEFAULT_STEPS = (0, 1, 2, 3, 4, 5, 10, 25, 50, 100)
DEFAULT_EPISODES = 600
TEST_SEED = 2_000_003
"""Seed of the test episodes. Training and validation have seeds of their own."""


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """The tasks of a test, and how they are measured.

    Examples:
        >>> from firststep.evaluation import EvaluationSettings
        >>> EvaluationSettings(steps=(0, 1), shots=1).episodes
        600
    """

    steps: tuple[int, ...] = DEFAULT_STEPS
    """Numbers of inner steps after which to test; they may exceed the trained number."""
    auto: bool = False
    """Also choose the number of steps per support set by cross-validation."""
    rate_multiplier: float = 1.0
    """Multiply the length of inner steps by this."""
    episodes: int = DEFAULT_EPISODES
    """Number of test episodes."""
    split: Literal["test", "val", "train"] = "test"
    """Split of the episodes."""
    ways: int | None = None
    """Number of classes per task; as trained if left out. A shared or zero head takes any number. A
    per-class head uses its first rows for fewer classes, and refuses more."""
    shots: int | None = None
    """Number of support images per class; as trained if left out."""
    queries: int | None = None
    """Number of query images per class; as trained if left out."""
    subset: str | None = None
    """Parameters whose condition number is shown; the constrained ones if left out."""
    seed: int = TEST_SEED
    """Seed of the episodes; runs are comparable if it is the same."""

    def __post_init__(self) -> None:
        if self.episodes < 2:
            raise FirststepError(
                f"`episodes` must be at least 2 for a confidence interval, got {self.episodes}"
            )
        if not self.steps or min(self.steps) < 0:
            raise FirststepError(f"`steps` must be integers of at least 0, got {list(self.steps)}")
        if not 0 < self.rate_multiplier < float("inf"):
            raise FirststepError(f"`rate_multiplier` must be a positive number, got {self.rate_multiplier}")

    def or_else(self, **defaults: Any) -> EvaluationSettings:
        """Return the settings with these values for fields that are None."""
        return replace(
            self, **{name: value for name, value in defaults.items() if getattr(self, name) is None}
        )

    def tasks(self) -> dict[str, Any]:
        """Return what a file stores: all but ``steps`` and ``auto``, which its numbers show."""
        return {field.name: getattr(self, field.name) for field in fields(self)[2:]}


DEFAULTS = EvaluationSettings()
