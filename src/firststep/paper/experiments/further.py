"""Experiments that the paper does not have: how the classifier starts, and every method."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from firststep.evaluation import EvaluationSettings
from firststep.paper.experiment import Experiment, Row, named_test, protocol, register_experiment, within
from firststep.paper.parameter_count import parameter_count

STEPS = tuple(range(11))
HEADS = ("per-class", "shared", "zero")


@register_experiment("heads")
def heads() -> Experiment:
    """Not in the paper: a row per class, shared and zero head, with and without the loss; Gauss-Newton"""
    tests = (named_test(EvaluationSettings(steps=STEPS)),)
    rows = []
    for head in HEADS:
        for conditioned in (False, True):
            rows.append(
                Row(
                    label=f"{head} + conditioning" if conditioned else head,
                    config=protocol("cifar-fs", "conv4", head=head, conditioned=conditioned),
                    tests=tests,
                    over=None if head == HEADS[0] and not conditioned else HEADS[0],
                )
            )
    for head in ("per-class", "shared"):
        rows.append(
            Row(
                label=f"{head}, gauss-newton",
                config=protocol("cifar-fs", "conv4", head=head, method="gauss-newton", conditioned=False),
                tests=tests,
                over=HEADS[0],
            )
        )
    return Experiment(
        title="Heads: how the classifier starts, Conv4, 5-way 5-shot",
        rows=tuple(rows),
        shows=("class_offset", "largest_share", "parameters"),
        note="All with the same budget and episodes; gains are over MAML as published, `per-class`. "
        "`class offset`: length of the mean query logit before the first step; `largest class %`: the share "
        "of queries that fall into one class there. In exact arithmetic the shared and the zero head are the "
        "same learner. A Gauss-Newton step of the classifier, always taken whole (rate 1), is what perfect "
        "conditioning would give.",
    )


UNSEEN_EPISODES = 3_000_017
"""Seed of test episodes that no result had used before the experiments below."""


@register_experiment("every-step")
def every_step() -> Experiment:
    """Not in the paper: query loss after every step, or one step; with and without loss and shared head"""
    unseen = EvaluationSettings(steps=STEPS, seed=UNSEEN_EPISODES)
    tests = (
        named_test(unseen),
        *(named_test(replace(unseen, steps=(1,), rate_multiplier=times)) for times in (2.0, 3.0, 5.0)),
    )
    trained_on: dict[str, dict[str, Any]] = {
        "last step": {},
        "every step": {"query_weights": "equal"},
        "every step, annealed": {"query_weights": "annealed"},
        "K = 1": {"steps": 1},
    }
    rows: list[Row] = []
    for head in ("per-class", "shared"):
        for label, changes in trained_on.items():
            for conditioned in (False, True):
                name = ("" if head == "per-class" else f"{head}, ") + label + " + loss" * conditioned
                config = protocol("cifar-fs", "conv4", head=head, conditioned=conditioned)
                over = None if not rows else "last step"
                rows.append(Row(label=name, config=replace(config, **changes), tests=tests, over=over))
    return Experiment(
        title="Training on every step, or with one step alone, Conv4, 5-way 5-shot",
        rows=tuple(rows),
        shows=("class_offset", "largest_share"),
        note="All with the same number of meta-updates and the same episodes. `last step` is MAML: only the "
        "query loss after the last of five steps counts. `every step`: the mean of the five query losses. "
        "`annealed`: that mean at first, only the last step after a tenth of the updates (MAML++). `K = 1`: "
        "one inner step in training, about a quarter of the time. `loss` is the conditioning loss. Gains are "
        "over MAML.",
    )


RIVALS = (
    *(
        "maml",
        "fomaml",
        "anil",
        "boil",
        "meta-sgd",
        "meta-curvature",
        "modgrad",
        "warp-maml",
        "gap",
        "maml++",
    ),
    "gauss-newton",
)
"""Methods of few-shot classification; inner optimisers are not among them."""


@register_experiment("rivals")
def rivals() -> Experiment:
    """Not in the paper: every method plain, with the conditioning loss, and with a shared head"""
    rows = []
    for method in RIVALS:
        plain, conditioned, shared = (
            protocol("cifar-fs", "conv4", method=method, head=head, conditioned=with_loss)
            for head, with_loss in (("per-class", False), ("per-class", True), ("shared", False))
        )
        rows.append(Row(label=method, config=plain, tests=(within(),)))
        rows.append(Row(label=f"{method} + conditioning", config=conditioned, tests=(within(),), over=method))
        # Methods that never move the classifier cannot use a shared head.
        if not math.isnan(parameter_count(shared)):
            rows.append(Row(label=f"{method}, shared head", config=shared, tests=(within(),), over=method))
    return Experiment(
        title="The rivals: every method, with the loss, and with a shared head, Conv4, 5-way 5-shot",
        rows=tuple(rows),
        shows=("parameters",),
        figure="rivals",
        note="Every method with the same budget and episodes; ModGrad with its authors' own inner rate, "
        "Gauss-Newton with the whole step. BOIL and ModGrad never move the classifier: they have no shared "
        "head.",
    )
