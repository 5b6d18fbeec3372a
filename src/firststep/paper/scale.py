"""Scales: what is changed of the paper's protocol so that an experiment fits a machine, and nothing else."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any

from firststep.backbones import BACKBONES
from firststep.errors import FirststepError, unknown
from firststep.jobs import EvaluationSpec
from firststep.paper.experiment import PAPER_FILTERS, named_test
from firststep.training import TrainConfig


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What differs from the paper's protocol; what is left out stays as it is there.

    Examples:
        >>> from firststep.paper import Changes
        >>> Changes(updates=200, seeds=(0, 1, 2)).seeds
        (0, 1, 2)
    """

    updates: int | None = None
    """Meta-updates; the paper has 40,000, and 60,000 for one shot."""
    meta_batch: int | None = None
    """Tasks of a meta-update; the paper's code has 4."""
    outer_rate: float | None = None
    """Adam's learning rate; the paper's code has 0.001."""
    filters: int | None = None
    """Channels of a Conv block where the paper has 64; other widths in proportion. ResNets keep theirs."""
    image_size: int | None = None
    """Side of the images, for ResNets at least 32; the paper has 84 px for Conv and 224 px for ResNet."""
    queries: int | None = None
    """Query images of each class; the paper has 16."""
    head: str | None = None
    """How the classifier starts: per-class as in the paper, shared or zero."""
    init: str | None = None
    """Weights that every run starts from: a folder of `firststep pretrain`; the paper has none."""
    optimizer: str | None = None
    """adam as in the paper, or adamw."""
    weight_decay: float | None = None
    """Of adamw."""
    schedule: str | None = None
    """Of the outer rate: constant as in the paper, or cosine."""
    warmup: int | None = None
    """Meta-updates over which the outer rate first rises; the paper has none."""
    clip_norm: float | None = None
    """Largest norm of the outer gradient; the paper has no bound."""
    ema: float | None = None
    """Decay of a moving average of the weights, validated beside them; the paper has none."""
    augment: bool = False
    """Random crops, flips and colour jitter on training episodes."""
    gamma: float | None = None
    """Weight γ of the conditioning loss, of the rows that have it; the paper has 1."""
    rate: float | None = None
    """Inner rate α of every run; the paper's code has 0.01."""
    rate_times_features: float | None = None
    """α times the number of features, constant so that all networks are in one regime of the rate."""
    episodes: int | None = None
    """Maximum number of test episodes; the paper has 600."""
    longest: int | None = None
    """Tests after more inner steps than this are left out; the paper goes to 100."""
    validate_every: int | None = None
    """Meta-updates between validations; the protocol has 25."""
    validation_episodes: int | None = None
    """Validation episodes; the protocol has 100."""
    all_every: int | None = None
    """Validations between measurements of the condition number of all parameters; 10 for Conv4."""
    seeds: tuple[int, ...] | None = None
    """Every row is trained once for each: they decide the initial values and every training episode; 0."""
    compile: bool | None = None
    """Compile the inner step; does not change what is computed beyond rounding."""
    threads: int | None = None
    """CPU threads of a run; does not change what is computed beyond rounding."""

    def __post_init__(self) -> None:
        if self.seeds is not None and (not self.seeds or len(set(self.seeds)) < len(self.seeds)):
            given = " ".join(map(str, self.seeds)) or "without a number"
            raise FirststepError(f"`seeds` {given}: give each seed once, for example 0 1 2")
        if self.seeds is not None and min(self.seeds) < 0:
            raise FirststepError(f"`seeds` must be at least 0, not {min(self.seeds)}")

    def given(self) -> dict[str, Any]:
        """Only what is changed."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        }


UNCHANGED = Changes()
SCALES: dict[str, Changes] = {
    "paper": UNCHANGED,
    # The rate: design and trials hold α·E‖φ‖² at about 10 to 16, where the paper's runs are; with glyphs of
    # 32 px that is α = 0.1 for 16 filters (64 features) and 0.05 for 32. For both methods alike.
    # The outer rate: so short a training gets further with three times the step (see the recipe `glyphs`).
    # Not compiled: there are many networks, and compiling each takes as long as training it.
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
    # Numbers that mean nothing: every line of code is run, in seconds.
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
"""What each named scale changes in the paper's protocol.

Examples:
    >>> from firststep.paper import SCALES
    >>> SCALES["laptop"].updates, SCALES["laptop"].filters
    (100, 16)
"""
OWN_RATE = ("modgrad", "gauss-newton")
"""Methods that keep their own inner rate: ModGrad its authors', as it moves few layers and not the
classifier; a Gauss-Newton step is scaled by the curvature already."""
_OF_TRAINING = {field.name for field in dataclasses.fields(TrainConfig)} - {"filters", "rate", "all_every"}
"""Fields of ``Changes`` with these names go into a run's configuration as they are."""


@dataclass(frozen=True)
class Scale:
    """A named scale, with what the user asked to be different from it.

    Examples:
        >>> from firststep.paper import Changes, Scale
        >>> Scale("laptop", Changes(updates=200)).flags()
        ['--scale', 'laptop', '--updates', '200']
    """

    name: str
    overrides: Changes = UNCHANGED

    @property
    def changes(self) -> Changes:
        if self.name not in SCALES:
            raise unknown("scale", self.name, SCALES)
        all_changes = {**SCALES[self.name].given(), **self.overrides.given()}
        if self.overrides.rate is not None:
            all_changes.pop("rate_times_features", None)  # the rate that was asked for stands
        return Changes(**all_changes)

    def config(self, config: TrainConfig) -> TrainConfig:
        """A run of the paper's protocol, at this scale."""
        c = self.changes
        changed: dict[str, Any] = {name: value for name, value in c.given().items() if name in _OF_TRAINING}
        if c.all_every is not None and config.all_every:
            changed["all_every"] = c.all_every
        if config.conditioning == "none":
            changed.pop("gamma", None)  # it would change the name of a run and nothing else
        if c.image_size is not None:
            changed["image_size"] = max(c.image_size, BACKBONES[config.backbone].smallest_image)
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

    def test(self, wanted: EvaluationSpec) -> EvaluationSpec | None:
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
    def words(self) -> str:
        """For folder names: ``laptop``, or ``laptop-updates-2000-filters-32``."""
        changed = (
            "-".join(["", name.replace("_", "-"), *_words(name, value)])
            for name, value in self.overrides.given().items()
        )
        return f"{self.name}{''.join(changed)}".lower()

    def flags(self) -> list[str]:
        """As the command line takes it."""
        words = ["--scale", self.name]
        for name, value in self.overrides.given().items():
            words += [f"--{name.replace('_', '-')}", *_words(name, value)]
        return words

    def describe(self) -> str:
        """The scale and everything that it changes, in a line; seeds are no change of it."""
        changes = ", ".join(
            " ".join([name.replace("_", " "), *_words(name, value)])
            for name, value in self.changes.given().items()
            if name != "seeds"
        )
        asked = ", ".join(name.replace("_", " ") for name in self.overrides.given() if name != "seeds")
        return (
            f"{self.name}"
            + (f" with other {asked}" if asked else "")
            + (f" (changed from the paper's protocol: {changes})" if changes else " (the paper's protocol)")
        )


def _words(name: str, value: Any) -> list[str]:
    """A change's value as the command line takes it; a flag, which is off by default, has none."""
    if getattr(UNCHANGED, name) is False:
        return []
    if name == "init":
        return ["PATH"]  # nobody's own folders
    return [str(each) for each in (value if isinstance(value, tuple) else (value,))]


def features(config: TrainConfig) -> int:
    """The number of features that the classifier sees."""
    backbone = BACKBONES[config.backbone]
    return backbone.features(config.image_size or backbone.image_size, config.filters)
