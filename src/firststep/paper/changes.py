"""The scales: what each changes of the paper's protocol so that an experiment fits a machine."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What differs from the paper's protocol; what is left out stays as it is there."""

    updates: int | None = None
    """Meta-updates; the paper has 40,000, and 60,000 for one shot."""
    meta_batch: int | None = None
    """Tasks of a meta-update; the paper's code has 4."""
    outer_rate: float | None = None
    """Adam's learning rate; the paper's code has 0.001."""
    filters: int | None = None
    """Channels of a Conv block where the paper has 64; other widths in proportion. ResNets keep theirs."""
    image_size: int | None = None
    """Side of the pictures, for ResNets at least 32; the paper has 84 px for Conv and 224 px for ResNet."""
    queries: int | None = None
    """Query pictures of each class; the paper has 16."""
    rate: float | None = None
    """Inner rate α of every run; the paper's code has 0.01."""
    rate_times_features: float | None = None
    """α times the number of features, constant so that all networks are in one regime of the rate."""
    episodes: int | None = None
    """At most so many test episodes; the paper has 600."""
    longest: int | None = None
    """Tests after more inner steps than this are left out; the paper goes to 100."""
    validate_every: int | None = None
    """Meta-updates between validations; the protocol has 25."""
    validation_episodes: int | None = None
    """Validation episodes; the protocol has 100."""
    all_every: int | None = None
    """Validations between measurements of the condition number of all parameters; 10 for Conv4."""
    seed: int | None = None
    """Decides the initial values and every training episode; 0."""
    compile: bool | None = None
    """Compile the inner step; does not change what is computed beyond rounding."""
    threads: int | None = None
    """CPU threads of a run; does not change what is computed beyond rounding."""

    def given(self) -> dict[str, Any]:
        """Only what is changed."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


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
