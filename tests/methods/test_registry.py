"""A method of one's own, by the name that commands and configurations use."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from firststep import METHODS, FirststepError, Method, Rule, build_method
from firststep.functional import FunctionalModule, Learner, meta_gradient
from firststep.rules import no_parameters
from networks import small_conv, small_task


def signs(grads: dict, params: dict, rule_params: dict, loss: object, *, rate: float) -> dict:
    return {name: -rate * grad.sign() for name, grad in grads.items()}


def build_signs(rate: float | None, steps: int) -> Method:
    return Method(rule=Rule(name="signs", init=no_parameters, update=partial(signs, rate=rate or 0.001)))


def test_a_method_of_one_s_own() -> None:
    METHODS.register("signs", build_signs)
    try:
        method = build_method("signs", rate=0.01)
        model = FunctionalModule(method.prepare(small_conv(), None))
        assert torch.isfinite(meta_gradient(Learner(model, method.rule), [small_task()], steps=2).loss)
        with pytest.raises(ValueError, match="there is already a method called 'signs'"):
            METHODS.register("signs", build_signs)
    finally:
        METHODS.unregister("signs")


def test_an_unknown_name_suggests_the_nearest() -> None:
    """The error is for users, as for any bad input, and still a ValueError of the call and a KeyError."""
    for kind in (FirststepError, ValueError, KeyError):
        with pytest.raises(kind, match=r"^unknown method 'mamll'; did you mean maml"):
            build_method("mamll")
    assert METHODS.get("mamll") is None


class OuterOnly(torch.nn.Module):
    """A network of one's own that names what Warp-MAML's inner loop leaves alone."""

    outer_loop_only = ("warp",)

    def __init__(self) -> None:
        super().__init__()
        self.warp = torch.nn.Linear(256, 8)
        self.classifier = torch.nn.Linear(8, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.tanh(self.warp(images.flatten(1))))


def test_a_network_says_what_the_inner_loop_leaves_alone() -> None:
    rule = build_method("warp-maml").rule
    assert rule.moving(FunctionalModule(OuterOnly())) == ("classifier.weight", "classifier.bias")
