"""The accuracy to expect of a few-shot classifier, and its interval, from held-out samples."""

from __future__ import annotations

from dataclasses import dataclass

LEARNING = 0.35
"""Exponent of the learning curve. Both constants are measured by ``benchmarks/photo_choices.py``."""
SPREAD = 2.0
"""Variance of the accuracy of held-out samples, as a multiple of that of independent ones."""


@dataclass(frozen=True)
class Promise:
    """Accuracy to expect: how many held-out samples were classified correctly.

    A held-out sample is classified by what was fitted to fewer samples than the final classifier, which makes
    more errors. Its errors fall with the number of samples per class to the power of -:data:`LEARNING`.

    Held-out samples are not independent draws: those of a class share their difficulty, and all share the
    samples that were fitted (Bates, Hastie and Tibshirani, "Cross-validation: what does it estimate and how
    well does it do it?", 2023). So the interval is Wilson's for fewer samples, ``total`` / :data:`SPREAD`.
    """

    right: int
    total: int
    kept: float = 1.0
    """Share of a class's samples that the held-out ones were classified by, on average."""

    @property
    def accuracy(self) -> float:
        """Share of the held-out samples that were classified correctly."""
        return self.right / self.total

    @property
    def expected(self) -> float:
        """Accuracy to expect of what is fitted to all samples."""
        return float(1 - (1 - self.accuracy) * self.kept**LEARNING)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy to expect."""
        z, count, share = 1.96, self.total / SPREAD, self.expected
        middle = (share + z * z / (2 * count)) / (1 + z * z / count)
        half = z / (1 + z * z / count) * (share * (1 - share) / count + z * z / (4 * count**2)) ** 0.5
        return max(0.0, middle - half), min(1.0, middle + half)
