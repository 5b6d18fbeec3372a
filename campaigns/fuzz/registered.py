"""What a user's module may register: each a piece of its source, and the flags of a training that uses it."""

from __future__ import annotations

HEAD = """
import torch
from torch import nn
from firststep import METHODS, Method, Rule, maml, BACKBONES, Backbone, CONDITIONING_LOSSES
from firststep.evaluation import METRICS, Metric
from firststep.data import DatasetInfo, Layout, Source, ArrayImages, register_dataset

def fail(*args, **kwargs):
    raise {error}

def nothing(*args, **kwargs):
    return {{}}

def method(make):
    METHODS.register("own", make)

def rule(init, update):
    method(lambda rate, steps: Method(rule=Rule(name="own", init=init, update=update)))

def loss(function):
    CONDITIONING_LOSSES.register("own", function)

def metric(compute):
    METRICS.register("own", Metric(title="own", compute=compute))

def backbone(build):
    BACKBONES.register("own", Backbone(
        title="own", build=build, features=fail, has_filters=False, image_size=16, smallest_image=1))

def dataset(parts, read):
    layouts = (Layout("x", parts, read),)
    register_dataset(DatasetInfo(name="own", about="x", image_size=16, layouts=layouts))

"""
_METHOD, _LOSS, _BACKBONE = ("--method", "own"), ("--conditioning", "own"), ("--backbone", "own")
_DATASET = ("--data", "own", "--data-path", ".")

LINES: dict[str, tuple[str, ...]] = {
    "method(fail)": _METHOD,
    "method(None)": _METHOD,
    "METHODS.register('maml', fail)": (),
    "METHODS.register(5, fail)": (),
    "METHODS.register('', fail)": (),
    "method(lambda rate, steps: None)": _METHOD,
    "method(lambda rate, steps: Method(rule=None))": _METHOD,
    "method(lambda rate, steps: Method(rule=maml(rate=float('nan'))))": _METHOD,
    "method(lambda rate, steps: Method(rule=maml(rate=1e30)))": _METHOD,
    "rule(fail, fail)": _METHOD,
    "rule(nothing, fail)": _METHOD,
    "rule(nothing, nothing)": _METHOD,
    "rule(nothing, lambda *args, **kwargs: None)": _METHOD,
    "rule(nothing, lambda grads, *rest, **more: {name: 'x' for name in grads})": _METHOD,
    "rule(lambda *args: {'a': 3}, nothing)": _METHOD,
    "loss(fail)": _LOSS,
    "loss(lambda gram: None)": _LOSS,
    "loss(lambda gram: 3.0)": _LOSS,
    "loss(lambda gram: gram)": _LOSS,
    "loss(lambda gram: gram.sum((-1, -2)) * float('nan'))": _LOSS,
    "metric(fail)": (),
    "metric(lambda state: None)": (),
    "metric(lambda state: torch.zeros(3))": (),
    "metric(lambda state: float('nan'))": (),
    "backbone(fail)": _BACKBONE,
    "backbone(lambda *args, **kwargs: None)": _BACKBONE,
    "backbone(lambda *args, **kwargs: nn.Identity())": _BACKBONE,
    "dataset(fail, fail)": _DATASET,
    "dataset(lambda root: [root], fail)": _DATASET,
    "dataset(lambda root: [root], lambda root: None)": _DATASET,
    "dataset(lambda root: 5, fail)": _DATASET,
}
"""``fail`` raises an error of the case's choice."""
