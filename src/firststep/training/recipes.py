"""Named configurations: functions that return one, so that they can be read, called and changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from firststep.errors import unknown
from firststep.training.config import TrainConfig


def paper() -> TrainConfig:
    """The paper's protocol on the embedded glyphs."""
    return TrainConfig()


def glyphs_paper() -> TrainConfig:
    """The paper's model on a laptop, as the shipped pair was trained.

    Both rates are larger than the paper's and the same with and without conditioning. The inner one (0.05
    against 0.01) because the features of a 32-pixel image are much smaller than those of an 84-pixel one.
    The outer one (0.003 against 0.001) because the training is short: on validation the conditioned model
    got in 100 updates to where 0.001 took it in 300. Both were chosen by validation accuracy.
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
    """The recipe glyphs with a zero head: all classes start from zero."""
    return replace(glyphs_paper(), head="zero")


def demo() -> TrainConfig:
    """What `firststep demo` trains: under a minute on one core.

    Many updates of one task, with larger rates than the other recipes: MAML's class offset grows with the
    updates, and with it what the loss repairs. 16 filters pay for them. Not compiled, because compiling takes
    longer than the training. All were chosen on validation episodes.
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

    As in Finn et al. (2017): two hidden layers of 40, inner rate 0.01, 25 tasks per update, Adam's rate
    0.001. They train one inner step for 70,000 updates; here it is five steps and 3,000 updates.
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
"""Configurations by name, each a function; what ``firststep train NAME`` begins with.

Examples:
    >>> from firststep.training import RECIPES
    >>> list(RECIPES)
    ['paper', 'glyphs', 'glyphs-paper', 'glyphs-zero', 'demo', 'sinusoid']
"""


def recipe(name: str) -> TrainConfig:
    """The recipe of that name; an unknown one suggests the nearest.

    Examples:
        >>> from firststep.training import recipe
        >>> recipe("glyphs").head
        'shared'
    """
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]()
