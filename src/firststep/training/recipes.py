"""Recipes: named functions that return a configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from firststep.errors import unknown
from firststep.training.config import TrainConfig


def paper() -> TrainConfig:
    """The paper's protocol on the embedded glyphs."""
    return TrainConfig()


def glyphs_paper() -> TrainConfig:
    """The paper's model on a laptop: the recipe of the shipped pair.

    Both rates are larger than the paper's, and the same with and without the conditioning loss. The inner
    rate is 0.05 instead of 0.01, because the features of a 32-pixel image are much smaller than those of an
    84-pixel image. The outer rate is 0.003 instead of 0.001, because the training is short: on validation,
    the conditioned model reached in 100 updates what took 300 with 0.001. Both were chosen by validation
    accuracy.
    """
    return TrainConfig(
        filters=32,
        shots=5,
        queries=5,
        rate=0.05,
        outer_rate=0.003,
        updates=600,
        validate_every=50,
        validation_episodes=50,
        compile=True,
    )


def glyphs() -> TrainConfig:
    """Our best on a laptop: conditioning loss and shared head.

    A shared head takes any number of classes.
    """
    return replace(glyphs_paper(), head="shared")


def glyphs_zero() -> TrainConfig:
    """Like glyphs, with a zero head: the classifier starts from 0."""
    return replace(glyphs_paper(), head="zero")


def demo() -> TrainConfig:
    """The training of `firststep demo`: under a minute on one core.

    It makes many updates of one task each, at larger rates than the other recipes. MAML's class offset grows
    with the number of updates, and the conditioning loss repairs it. 16 filters make these updates
    affordable. Compiling would take longer than the training. All settings were chosen on validation
    episodes.
    """
    return replace(
        glyphs_paper(),
        filters=16,
        rate=0.1,
        meta_batch=1,
        outer_rate=0.006,
        updates=180,
        validate_every=60,
        validation_episodes=8,
        compile=False,
    )


def sinusoid() -> TrainConfig:
    """Regression of sinusoids, 10-shot, by plain MAML.

    The network and rates are those of Finn et al. (2017): two hidden layers of 40 units, inner rate 0.01, 25
    tasks per update, Adam's rate 0.001. They train one inner step for 70,000 updates; here it is five steps
    and 3,000 updates.
    """
    return TrainConfig(
        tasks="sinusoid",
        backbone="mlp",
        loss="squared_error",
        conditioning="none",
        shots=10,
        queries=10,
        rate=0.01,
        meta_batch=25,
        updates=3000,
        validate_every=250,
        validation_episodes=200,
    )


RECIPES: dict[str, Callable[[], TrainConfig]] = {
    "paper": paper,
    "glyphs": glyphs,
    "glyphs-paper": glyphs_paper,
    "glyphs-zero": glyphs_zero,
    "demo": demo,
    "sinusoid": sinusoid,
}
"""Configurations by name, each a function: the starting points of ``firststep train NAME``.

Examples:
    >>> from firststep.training import RECIPES
    >>> list(RECIPES)
    ['paper', 'glyphs', 'glyphs-paper', 'glyphs-zero', 'demo', 'sinusoid']
"""


def recipe(name: str) -> TrainConfig:
    """Return the named recipe; an unknown name suggests the nearest.

    Examples:
        >>> from firststep.training import recipe
        >>> recipe("glyphs").head
        'shared'
    """
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]()
