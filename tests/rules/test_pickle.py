"""Rules and methods are values: a copy by pickle makes the same step."""

from __future__ import annotations

import pickle

import pytest
import torch

from firststep import METHODS, build_method
from firststep.functional import FunctionalModule, Learner, adapt
from firststep.rules import scaled
from networks import perturbed_rule_params, small_conv, small_task


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("multiplier", [1.0, 2.0])
def test_every_method_can_be_pickled(name: str, multiplier: float) -> None:
    method, task = build_method(name, 0.2), small_task()
    model = FunctionalModule(method.prepare(small_conv(), None))
    rule_params = perturbed_rule_params(method, model)
    rule = scaled(method.rule, multiplier)
    copies = pickle.loads(pickle.dumps((rule, method)))
    expected, got = (
        adapt(Learner(model, one, rule_params=rule_params), task.support_x, task.support_y, steps=2).adapted
        for one in (rule, copies[0])
    )
    assert all(torch.equal(got[key], value) for key, value in expected.items())
    assert copies[1].rule.init(model, model.params()).keys() == rule_params.keys()
    assert copies[1].query_weights(0, 100, 3) == method.query_weights(0, 100, 3)
