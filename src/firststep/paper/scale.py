"""A run or a test of the paper's protocol at a scale: what the scale states is changed, and nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from firststep.backbones import BACKBONES
from firststep.errors import unknown
from firststep.jobs import Test
from firststep.paper.changes import SCALES, UNCHANGED, Changes
from firststep.paper.experiment import PAPER_FILTERS, named_test
from firststep.training import TrainConfig

RESNET_LEAST = 32
"""Side of the smallest picture that a ResNet takes."""
_TAKEN_OVER = (
    "updates",
    "meta_batch",
    "outer_rate",
    "image_size",
    "queries",
    "validate_every",
    "validation_episodes",
    "seed",
    "compile",
    "threads",
)
"""What goes into a run's configuration as it is."""
OWN_RATE = ("modgrad",)
"""Methods that keep their authors' inner rate: they move few layers, and not the classifier."""

LONGEST_NAME = 40  # characters for the changes in a file name


@dataclass(frozen=True)
class Scale:
    """A named scale, with what the user asked to be different from it."""

    name: str
    overrides: Changes = UNCHANGED

    @property
    def changes(self) -> Changes:
        if self.name not in SCALES:
            raise unknown("scale", self.name, SCALES)
        own = {**SCALES[self.name].given(), **self.overrides.given()}
        if self.overrides.rate is not None:
            own.pop("rate_times_features", None)  # the rate that was asked for stands
        return Changes(**own)

    def config(self, config: TrainConfig) -> TrainConfig:
        """A run of the paper's protocol, at this scale."""
        c = self.changes
        changed: dict[str, Any] = {name: value for name, value in c.given().items() if name in _TAKEN_OVER}
        if c.all_every is not None and config.all_every:
            changed["all_every"] = c.all_every
        if c.image_size is not None and config.backbone.startswith("resnet"):
            changed["image_size"] = max(c.image_size, RESNET_LEAST)
        if c.filters is not None and config.filters is not None:
            changed["filters"] = max(1, round(config.filters * c.filters / PAPER_FILTERS))
        scaled = replace(config, **changed)
        return replace(scaled, rate=self._rate(scaled))

    def _rate(self, config: TrainConfig) -> float | None:
        if config.method in OWN_RATE:
            return config.rate
        if self.changes.rate_times_features is not None:
            return float(f"{self.changes.rate_times_features / features(config):.4g}")
        return self.changes.rate if self.changes.rate is not None else config.rate

    def test(self, wanted: Test) -> Test | None:
        """A test of the paper's protocol at this scale; None where nothing of it is left."""
        c, options = self.changes, wanted.options
        steps = tuple(step for step in options["steps"] if c.longest is None or step <= c.longest)
        if not steps:
            return None
        return named_test(
            steps=steps,
            episodes=min(options["episodes"], c.episodes or options["episodes"]),
            rate_multiplier=options["rate_multiplier"],
            split=options.get("split", "test"),
        )

    @property
    def slug(self) -> str:
        """For file names; a hash stands for many changes, which the files themselves list."""
        extra = "".join(f"-{name.replace('_', '-')}{value}" for name, value in self.overrides.given().items())
        if len(extra) > LONGEST_NAME:
            extra = f"-changed-{hashlib.sha256(extra.encode()).hexdigest()[:8]}"
        return f"{self.name}{extra}"

    def flags(self) -> list[str]:
        """As the command line takes it."""
        words = ["--scale", self.name]
        for name, value in self.overrides.given().items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return words

    def describe(self) -> str:
        """The scale and everything that it changes, in a line."""
        changes = ", ".join(
            f"{name.replace('_', ' ')} {value}" for name, value in self.changes.given().items()
        )
        asked = ", ".join(name.replace("_", " ") for name in self.overrides.given())
        return (
            f"{self.name}"
            + (f" with other {asked}" if asked else "")
            + (f" (changed from the paper's protocol: {changes})" if changes else " (the paper's protocol)")
        )


def features(config: TrainConfig) -> int:
    """The number of features that the classifier sees: four poolings for Conv, a mean for ResNet."""
    size = config.image_size or BACKBONES[config.backbone].image_size
    return config.filters * (size // 16) ** 2 if config.filters is not None else 512
