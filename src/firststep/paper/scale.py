"""Scales: named sets of changes to the paper's protocol, so that an experiment fits a machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from firststep.backbones import BACKBONES
from firststep.errors import unknown
from firststep.jobs import EvaluationSpec
from firststep.paper.changes import CHANGEABLE, UNCHANGED, Changes
from firststep.paper.describe import describe_scale
from firststep.paper.experiment import PAPER_FILTERS, named_test
from firststep.paper.record import ScaleRecord
from firststep.training import TrainConfig

SCALES: dict[str, Changes] = {
    "paper": UNCHANGED,
    # The inner rate keeps α·E‖φ‖² at about 10 to 16, as in the paper's runs. For glyphs at 32 px that is
    # α = 0.1 with 16 filters (64 features) and 0.05 with 32, for both methods.
    # The outer rate is three times the paper's: a training this short gets further (see the recipe `glyphs`).
    # Not compiled: compiling one of the many networks takes as long as training it.
    "laptop": Changes(
        updates=100,
        outer_rate=0.003,
        filters=16,
        image_size=32,
        queries=5,
        rate_times_features=6.4,
        episodes=200,
        longest=25,
        validate_every=25,
        validation_episodes=30,
        all_every=1,
        compile=False,
        threads=1,
    ),
    # Runs every line of code in seconds; the numbers mean nothing.
    "smoke": Changes(
        updates=2,
        meta_batch=1,
        filters=4,
        image_size=16,
        queries=2,
        rate_times_features=0.4,
        episodes=2,
        longest=10,
        validate_every=2,
        validation_episodes=2,
        all_every=1,
        compile=False,
        threads=1,
    ),
}
"""Name of a scale → its changes to the paper's protocol.

Examples:
    >>> from firststep.paper import SCALES
    >>> SCALES["laptop"]["updates"], SCALES["laptop"]["filters"]
    (100, 16)
"""
OWN_RATE = ("modgrad", "gauss-newton")
"""Methods that keep their own inner rate. ModGrad moves few layers and not the classifier; a Gauss-Newton
step is scaled by the curvature."""
PRIVATE = ("init", "cache")
"""Changes whose values are paths of somebody's machine."""


@dataclass(frozen=True)
class Scale:
    """A named scale, with the user's own changes to it.

    Examples:
        >>> from firststep.paper import Changes, Scale
        >>> Scale("laptop", Changes(updates=200)).flags()
        ['--scale', 'laptop', '--updates', '200']
    """

    name: str
    overrides: Changes = UNCHANGED

    @property
    def changes(self) -> Changes:
        """All changes to the paper's protocol."""
        if self.name not in SCALES:
            raise unknown("scale", self.name, SCALES)
        all_changes = {**SCALES[self.name], **self.overrides}
        if "rate" in self.overrides:
            all_changes.pop("rate_times_features", None)
        return Changes(**all_changes)

    def config(self, config: TrainConfig) -> TrainConfig:
        """Return a run of the paper's protocol at this scale."""
        changed = self.changes.training
        if not config.all_every:
            changed.pop("all_every", None)
        if config.conditioning == "none":
            changed.pop("gamma", None)  # it would change the name of a run and nothing else
        if "image_size" in changed:
            changed["image_size"] = max(changed["image_size"], BACKBONES[config.backbone].smallest_image)
        if "filters" in changed and config.filters is not None:
            changed["filters"] = max(1, round(config.filters * changed["filters"] / PAPER_FILTERS))
        else:
            changed.pop("filters", None)
        changed.pop("rate", None)
        scaled = replace(config, **changed)
        return replace(scaled, rate=self._rate(scaled))

    def _rate(self, config: TrainConfig) -> float | None:
        if config.method in OWN_RATE:
            return config.rate
        product = self.changes.get("rate_times_features")
        if product is not None:
            return float(f"{product / features(config):.4g}")
        rate: float | None = self.changes.get("rate", config.rate)
        return rate

    def test(self, planned: EvaluationSpec) -> EvaluationSpec | None:
        """Return a test of the paper's protocol at this scale; None if no step of it is left."""
        settings, longest = planned.settings, self.changes.get("longest")
        steps = tuple(step for step in settings.steps if longest is None or step <= longest)
        if not steps:
            return None
        episodes = min(settings.episodes, self.changes.get("episodes", settings.episodes))
        return named_test(replace(settings, steps=steps, episodes=episodes))

    @property
    def words(self) -> str:
        """The scale in a folder name: ``laptop``, or ``laptop-filters-32-updates-2000``."""
        changed = (
            "-".join(["", name.replace("_", "-"), *_words(name, value)])
            for name, value in self.overrides.items()
        )
        return f"{self.name}{''.join(changed)}".lower()

    def flags(self) -> list[str]:
        """Return the scale as flags of the command line."""
        words = ["--scale", self.name]
        for name, value in self.overrides.items():
            words += [f"--{name.replace('_', '-')}", *_words(name, value)]
        return words

    def record(self) -> ScaleRecord:
        """Return what a result stores about its scale."""
        return ScaleRecord(
            name=self.name,
            overrides=[name for name in self.overrides if name != "seeds"],
            changes={name: _public(name, value) for name, value in self.changes.items() if name != "seeds"},
        )

    def describe(self) -> str:
        """Return the scale and everything that it changes, in one line."""
        return describe_scale(self.record())


def is_switch(name: str) -> bool:
    """Return whether a change is a flag without a value: off by default, and no scale sets it."""
    return CHANGEABLE[name] is bool and not any(name in changes for changes in SCALES.values())


def _words(name: str, value: Any) -> list[str]:
    """Return the value of a change as the command line takes it."""
    if is_switch(name):
        return []
    value = _public(name, value)
    return [str(each) for each in (value if isinstance(value, tuple) else (value,))]


def _public(name: str, value: Any) -> Any:
    """Return the value without anybody's paths."""
    return "PATH" if name in PRIVATE else value


def features(config: TrainConfig) -> int:
    """Return the number of features that the classifier sees."""
    backbone = BACKBONES[config.backbone]
    return backbone.features(config.image_size or backbone.image_size, config.filters)
