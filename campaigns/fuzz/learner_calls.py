"""Calls that build and use networks, rules and meta-learners."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from torch import nn

import firststep
from campaigns.fuzz.arguments import NUMBERS, labels, pick, show, tensor
from campaigns.fuzz.case import Sandbox

Made = tuple[str, Callable[[], object]]
"""the arguments in words, and the call"""

RULES = (
    *("maml", "fomaml", "anil", "boil", "meta_sgd"),
    *("meta_curvature", "gap", "modgrad", "maml_plus_plus", "warp_maml", "gauss_newton"),
)


def _network(rng: Random) -> Any:
    if rng.random() < 0.8:
        return nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 3))
    small = nn.Linear(12, 3)
    return pick(rng, nn.Identity(), nn.Flatten(), small, None, 5, nn.Sequential(), small.half(), nn.ReLU)


def _learner(rng: Random) -> tuple[str, Callable[[], Any]]:
    network, rule = _network(rng), pick(rng, *RULES)
    rate = pick(rng, 0.1, 0.1, 0.1, *NUMBERS)
    steps = pick(rng, 1, 2, 2, 2, pick(rng, *NUMBERS))
    if isinstance(steps, int | float) and steps == steps and abs(steps) > 100:
        steps = -5  # many steps only take long
    options: dict[str, Any] = {"steps": steps}
    term: dict[str, Any] | None = None
    if rng.random() < 0.5:
        subset = pick(rng, "cls", "all", "emb", "ebn", "", "x", "cls+all", None)
        term = {"subset": subset, "weight": pick(rng, 1.0, 1.0, *NUMBERS)}
    if rng.random() < 0.15:
        option = pick(rng, "reduction", "engine", "classifier", "memory", "saved_dtype", "embedding")
        options[option] = pick(rng, "x", "mean", *NUMBERS)

    chosen: dict[str, Any] = {}
    if rng.random() < 0.2:
        chosen["moves"] = pick(rng, "cls", "body", "emb", "x", "", ["*.bias"], ["x"], [], (), None, 5)
    in_place_of_a_rule = pick(rng, *[None] * 30, 0.1, "maml", nn.Linear, firststep.maml, [])

    def build() -> Any:
        function = getattr(firststep, rule)
        if rule == "maml_plus_plus":
            chosen["steps"] = steps
        made = function(rate=rate, **chosen) if in_place_of_a_rule is None else in_place_of_a_rule
        conditioning = None if term is None else firststep.Conditioning(**term)
        return firststep.MetaLearner(network, made, conditioning=conditioning, **options)

    words = f"{rule}(rate={rate!r}, {chosen})" if in_place_of_a_rule is None else repr(in_place_of_a_rule)
    return f"{type(network).__name__}, {words}, {options}, {term}", build


def loss(rng: Random, sandbox: Sandbox) -> Made:
    words, build = _learner(rng)
    support = tensor(rng, 6, 12, whole=0.85), labels(rng, 6, 3, 0.85)
    task = (*support, tensor(rng, 3, 12, whole=0.85), labels(rng, 3, 3, 0.85))
    tasks = pick(rng, *[[task]] * 8, [], None, task, [task[:3]], [None], 5)

    def call() -> object:
        meta = build()
        value = meta(tasks)
        value.backward()
        return value, [p.grad for p in meta.parameters() if p.grad is not None]

    return f"{words}; {show(*task)}", call


def use(rng: Random, sandbox: Sandbox) -> Made:
    words, build = _learner(rng)
    images, targets = tensor(rng, 6, 12, whole=0.8), labels(rng, 6, 3, 0.8)
    steps = pick(rng, None, 0, 1, 3, -1, 1.5, "x", True)
    what, subset = pick(rng, "adapt", "condition_number", "choose_steps"), pick(rng, "cls", "all", "x")

    def call() -> object:
        meta = build()
        if what == "adapt":
            return meta.adapt(images, targets, steps=steps)(images)
        if what == "condition_number":
            return meta.condition_number(images, targets, subset=subset)
        return meta.choose_steps(images, targets).steps

    return f"{what}: {words}; {show(images, targets, steps)}", call


def backbone(rng: Random, sandbox: Sandbox) -> Made:
    name = pick(rng, "conv4", "conv6", "resnet10", "", "x", None, 4)
    odd = (0, 1, -1, 1.5, None, "x", True, 10**9)
    options = {"ways": pick(rng, 5, 2, 5, *odd, 10**12), "image_size": pick(rng, 16, 32, 3, *odd)}
    if rng.random() < 0.6:
        options["filters"] = pick(rng, 4, 8, *odd)
    if rng.random() < 0.3:
        options["channels"] = pick(rng, 1, 3, *odd)
    return f"{name!r}, {options}", lambda: firststep.build_backbone(name, **options)


def method(rng: Random, sandbox: Sandbox) -> Made:
    name = pick(rng, *firststep.METHODS, "", None, 5)
    # A large number of steps is not wrong; maml++ has parameters for each of them.
    steps = [number for number in NUMBERS if not isinstance(number, int | float) or not number > 100]
    options = {"steps": pick(rng, *steps), "rate": pick(rng, *NUMBERS)}
    return f"{name!r}, {options}", lambda: firststep.build_method(name, **options).rule.name
