"""``moves`` of every rule: what the inner loop changes, and which parameters of its own a rule has."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch

import firststep as fs
from firststep.functional import FunctionalModule, Learner, adapt
from networks import shallow_conv, shallow_task

TASK = shallow_task()
RULES = {
    name: getattr(fs, {"maml++": "maml_plus_plus"}.get(name, name.replace("-", "_"))) for name in fs.METHODS
}
WITH_PARAMETERS = ("meta-sgd", "meta-curvature", "modgrad", "gap", "maml++", "alfa", "metal")
GENERAL = ("generator/", "loss/", "adapter/", "scale", "shift")
"""Names of parameters that belong to no layer of the network."""
CONVOLUTION = ["blocks.1.conv.*"]


def network_for(name: str) -> torch.nn.Module:
    return fs.build_method(name).prepare(shallow_conv(), None)


@pytest.mark.parametrize("name", RULES)
def test_every_rule_moves_what_it_is_told_to(name: str) -> None:
    """And its gradient is exact, the rule's own parameters included, which are those of what moves."""
    chosen: Any = ["classifier.weight"] if name == "gauss-newton" else iter(CONVOLUTION)
    network = network_for(name)
    rule = pickle.loads(pickle.dumps(RULES[name](moves=chosen)))
    meta = fs.MetaLearner(network, rule, steps=2)
    moved = (
        ["classifier.weight"] if name == "gauss-newton" else ["blocks.1.conv.weight", "blocks.1.conv.bias"]
    )
    start = {key: value.detach().clone() for key, value in network.named_parameters()}
    adapted = meta.adapted_params(*TASK[:2], steps=2)
    assert [key for key in start if not torch.equal(adapted[key], start[key])] == moved
    paths = {key.rpartition(".")[0].replace(".", "/") for key in moved}
    of_layers = [key for key in meta.rule_params if not key.startswith(GENERAL)]
    assert all(any(path in key for path in paths) for key in of_layers)
    assert bool(len(meta.rule_params)) == (name in WITH_PARAMETERS)
    meta([TASK]).backward()
    other = fs.MetaLearner(network_for(name), rule, steps=2, engine="unrolled")
    other.load_state_dict(meta.state_dict())
    other([TASK]).backward()
    for (key, ours), theirs in zip(meta.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-7, atol=1e-12, msg=key)


@pytest.mark.parametrize(("named", "moves"), [("anil", "cls"), ("boil", "body")])
def test_anil_and_boil_are_cases_of_maml(named: str, moves: str) -> None:
    model = FunctionalModule(shallow_conv())
    ours, theirs = (
        adapt(Learner(model, rule), *TASK[:2], steps=2).adapted
        for rule in (RULES[named](0.2), fs.maml(0.2, moves))
    )
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_a_function_of_the_model_names_them() -> None:
    meta = fs.MetaLearner(shallow_conv(), fs.maml(moves=lambda model: model.subset("ebn")))
    assert meta.rule.moving(meta.functional) == ("blocks.1.norm.weight", "blocks.1.norm.bias")


@pytest.mark.parametrize(
    ("name", "moves", "message"),
    [
        ("maml", "x", "unknown parameter subset 'x'"),
        ("maml", ["nothing.*"], "no parameter matches 'nothing"),
        ("gauss-newton", "all", r"gauss-newton moves the classifier only: use moves='cls'"),
        ("gauss-newton", ["classifier.bias"], "gauss-newton moves the classifier only"),
        ("modgrad", "cls", "modgrad moves convolutions .* only; classifier.weight does not belong"),
        ("warp-maml", ["warps.*"], "leaves no parameter that the rule may move"),
        ("gap", "cls", "gap needs a convolution that moves; Conv has none"),
    ],
)
def test_what_a_rule_cannot_move_is_refused_at_once(name: str, moves: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fs.MetaLearner(network_for(name), RULES[name](moves=moves))


def test_a_layer_that_is_found_in_the_first_pass_must_be_named() -> None:
    """Rates are made before it: for the layer that was registered last, which is not the last to run."""

    class Backwards(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.second, self.first = torch.nn.Linear(4, 4), torch.nn.Linear(64, 4)
            self.fc = torch.nn.Linear(4, 3)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return self.fc(self.second(self.first(images.flatten(1))))

    rule = fs.meta_sgd(moves="emb")
    with pytest.raises(ValueError, match=r"'meta-sgd' finds no 'rate\.second\.weight' .* embedding="):
        fs.MetaLearner(Backwards().double(), rule)([TASK])
    fs.MetaLearner(Backwards().double(), rule, embedding="second")([TASK]).backward()
