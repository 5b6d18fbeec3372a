"""Calls of the library with arguments of every kind: a finite result, or an error that a caller expects."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from random import Random
from typing import Any

import torch

import firststep
from campaigns.fuzz import learner_calls
from campaigns.fuzz.arguments import NUMBERS, labels, pick, show, tensor
from campaigns.fuzz.case import Case, Sandbox
from campaigns.fuzz.learner_calls import Made


def library(rng: Random, sandbox: Sandbox) -> Case:
    name = rng.choice(list(CALLS))
    words, call = CALLS[name](rng, sandbox)
    return Case(what=f"{name}({words})", call=call, writes=("cache",), finite=name not in AS_IN_TORCH)


def _of_gram(function: str) -> Callable[[Random, Sandbox], Made]:
    """Return a generator of calls with a Gram matrix."""

    def make(rng: Random, sandbox: Sandbox) -> Made:
        gram = tensor(rng, pick(rng, 1, 2, 5), pick(rng, 1, 3, 8), whole=0.5)
        if isinstance(gram, torch.Tensor) and gram.dim() >= 2 and rng.random() < 0.8:
            if gram.dtype in (torch.float16, torch.bool):
                gram = gram.float()  # torch has no product of these
            gram = gram @ gram.mT
        options = {} if function == "eigenvalues" or rng.random() < 0.6 else {"rtol": pick(rng, *NUMBERS)}
        call = getattr(firststep, function)
        return show(gram, options), lambda: call(gram, **options)

    return make


def _of_logits(function: str) -> Callable[[Random, Sandbox], Made]:
    """Return a generator of calls with logits and labels, sometimes features too."""

    def make(rng: Random, sandbox: Sandbox) -> Made:
        n, classes = pick(rng, 1, 2, 10), pick(rng, 2, 5)
        arguments: tuple[Any, ...] = (tensor(rng, n, classes, whole=0.7), labels(rng, n, classes))
        if function != "cross_entropy_residuals":
            arguments = (tensor(rng, n, pick(rng, 1, 6), whole=0.7), *arguments)
        call = getattr(firststep, function)
        return show(*arguments), lambda: call(*arguments)

    return make


def _residuals(rng: Random, sandbox: Sandbox) -> Made:
    losses = tensor(rng, pick(rng, 1, 5))
    return show(losses), lambda: firststep.residuals(losses)


def _config(rng: Random, sandbox: Sandbox) -> Made:
    from firststep.training import TrainConfig

    names = [field.name for field in dataclasses.fields(TrainConfig)]
    values = {rng.choice(names): pick(rng, *NUMBERS, "", {}, (), b"x", []) for _ in range(pick(rng, 1, 2))}
    return repr(values)[:80], lambda: TrainConfig(**values).describe()


ODD_NUMBERS: tuple[Any, ...] = (1, 2, 3, 2, 0, -1, 10**9, 10**30, 1.5, None, "x", True)


def _episodes(rng: Random, sandbox: Sandbox) -> Made:
    from firststep.data import Episodes, open_dataset

    options = {name: pick(rng, 2, 2, *ODD_NUMBERS) for name in ("ways", "shots", "queries", "seed")}
    index, split = pick(rng, 0, 1, *ODD_NUMBERS), pick(rng, "train", "train", "val", "", None, 3)
    cache = sandbox.stock.folder / "cache"

    def call() -> object:
        data = open_dataset("folder", sandbox.stock.pictures, image_size=16, cache=cache)
        return list(Episodes(data.split(split), **options)[index])

    return f"{options}, {index!r}, split {split!r}", call


def _open(rng: Random, sandbox: Sandbox) -> Made:
    from firststep.data import open_dataset

    odd: tuple[Any, ...] = (0, -1, 3, 5000, 16, 16, 1.5, "x", True, 10**30, None)
    options = {
        name: pick(rng, *odd) for name in rng.sample(("image_size", "channels", "seed", "rotations"), 2)
    }
    right = ("folder", sandbox.stock.pictures)
    name, path = pick(rng, *[right] * 4, ("x", None), (None, None), ("folder", 5), ("folder", ""))

    def call() -> object:
        return open_dataset(name, path, cache="cache", **options).fingerprint

    return f"{name!r}, {options}", call


AS_IN_TORCH = ("MetaLearner", "classifier_gram")
"""Where numbers overflow their results are NaN, as those of torch: a training loop sees it in the loss."""
GRAM_FUNCTIONS = ("eigenvalues", "condition_number", "log_condition_number", "numerical_rank")
CALLS: dict[str, Callable[[Random, Sandbox], Made]] = {
    **{name: _of_gram(name) for name in (*GRAM_FUNCTIONS, "log_eigenvalue_variance")},
    **{
        name: _of_logits(name) for name in ("classifier_gram", "conditioning_loss", "cross_entropy_residuals")
    },
    "residuals": _residuals,
    "MetaLearner": learner_calls.loss,
    "MetaLearner.": learner_calls.use,
    "build_backbone": learner_calls.backbone,
    "build_method": learner_calls.method,
    "TrainConfig": _config,
    "Episodes": _episodes,
    "open_dataset": _open,
}
