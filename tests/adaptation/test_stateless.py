"""A rule that is no pure function of its arguments is refused before its first result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import firststep as fs
from firststep import functional
from firststep.adaptation import Learner, check_stateless
from firststep.rules import no_parameters
from networks import generator, shallow_conv, shallow_task

Params = dict[str, Tensor]
TASK = shallow_task()
RATE = 0.1


def momentum() -> Callable[..., Params]:
    kept: Params = {}

    def update(grads: Params, *_: Any) -> Params:
        for name, grad in grads.items():
            kept[name] = grad.detach() + 0.9 * kept.get(name, 0)
        return {name: -RATE * kept[name] for name in grads}

    return update


def adam() -> Callable[..., Params]:
    """Take Adam's bias-corrected steps: along one gradient they are all equal."""
    first: Params = {}
    second: Params = {}
    calls: list[int] = []

    def update(grads: Params, *_: Any) -> Params:
        calls.append(1)
        steps = {}
        for name, grad in grads.items():
            first[name] = 0.1 * grad.detach() + 0.9 * first.get(name, 0)
            second[name] = 0.001 * grad.detach().square() + 0.999 * second.get(name, 0)
            mean = first[name] / (1 - 0.9 ** len(calls))
            scale = (second[name] / (1 - 0.999 ** len(calls))).sqrt() + 1e-8
            steps[name] = -RATE * mean / scale
        return steps

    return update


def decay() -> Callable[..., Params]:
    calls: list[int] = []

    def update(grads: Params, *_: Any) -> Params:
        calls.append(1)
        return {name: -RATE * 0.99 ** len(calls) * grad for name, grad in grads.items()}

    return update


def noise() -> Callable[..., Params]:
    def update(grads: Params, *_: Any) -> Params:
        return {name: -RATE * (grad + 0.1 * torch.randn_like(grad)) for name, grad in grads.items()}

    return update


def plain(grads: Params, *_: Any) -> Params:
    return {name: -RATE * grad for name, grad in grads.items()}


def rule_of(update: Callable[..., Params], **options: Any) -> fs.Rule:
    return fs.Rule(name="own", init=no_parameters, update=update, **options)


USES: dict[str, Callable[[fs.Rule], object]] = {
    "stepwise": lambda rule: fs.MetaLearner(shallow_conv(), rule, steps=2)([TASK]),
    "unrolled": lambda rule: fs.MetaLearner(shallow_conv(), rule, steps=2, engine="unrolled")([TASK]),
    "loss": lambda rule: torch.no_grad()(fs.MetaLearner(shallow_conv(), rule, steps=2))([TASK]),
    "adapt": lambda rule: fs.MetaLearner(shallow_conv(), rule, steps=2).adapt(*TASK[:2]),
    "functional.adapt": lambda rule: functional.adapt(
        functional.Learner(functional.FunctionalModule(shallow_conv()), rule), *TASK[:2], steps=1
    ),
    "functional.meta_gradient": lambda rule: functional.meta_gradient(
        functional.Learner(functional.FunctionalModule(shallow_conv()), rule), [TASK], steps=1
    ),
}


@pytest.mark.parametrize(
    ("make", "use"),
    [*((momentum, use) for use in USES), *((make, "stepwise") for make in (adam, decay, noise))],
)
def test_hidden_state_is_refused_wherever_steps_are_taken(make: Any, use: str) -> None:
    with pytest.raises(ValueError, match=r"rule 'own' gives different steps .* state .* rule_params"):
        USES[use](rule_of(make()))


def test_a_compiled_learner_refuses_before_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._inductor, "compile", lambda *_, **__: pytest.fail("compiled"))
    with pytest.raises(ValueError, match="different steps"):
        fs.MetaLearner(shallow_conv(), rule_of(momentum()), steps=2, compile=True)([TASK])


class WithDropout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(64, 3)
        nn.init.normal_(self.fc.weight, generator=generator(1))

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(self.drop(images.flatten(1)))


def test_the_check_changes_no_number_and_draws_none() -> None:
    """Beside a rule that is not checked; dropout draws the same numbers in both evaluations of a step."""
    found = []
    for known in (True, False):
        torch.manual_seed(3)
        network = WithDropout().double()
        meta = fs.MetaLearner(network, rule_of(plain, stateless=known), steps=2, randomness="same")
        loss = meta([TASK, TASK])
        loss.backward()
        found.append([loss.detach(), network.fc.weight.grad, torch.rand(3)])
        assert meta.rule.stateless
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


def test_a_rule_is_checked_once() -> None:
    calls: list[int] = []

    def counted(grads: Params, *arguments: Any) -> Params:
        calls.append(1)
        return plain(grads)

    meta = fs.MetaLearner(shallow_conv(), rule_of(counted), steps=1)
    counts = []
    for _ in range(2):
        calls.clear()
        meta.adapt(*TASK[:2])
        counts.append(len(calls))
    assert counts == [4, 1]
    meta.scaled(2.0).adapt(*TASK[:2])
    assert len(calls) == 2


@pytest.mark.parametrize("name", fs.METHODS)
def test_our_own_rules_are_what_they_say(name: str) -> None:
    method = fs.build_method(name, 0.2)
    model = functional.FunctionalModule(method.prepare(shallow_conv(), None))
    assert method.rule.stateless
    object.__setattr__(method.rule, "stateless", False)
    rule_params = method.rule.init(model, model.params())
    check_stateless(Learner(model, method.rule, model.params(), rule_params), *TASK[:2])
    assert method.rule.stateless


def test_a_step_of_nan_is_no_state() -> None:
    def broken(grads: Params, *_: Any) -> Params:
        return {name: grad * float("nan") for name, grad in grads.items()}

    assert fs.MetaLearner(shallow_conv(), rule_of(broken), steps=1)([TASK]).isnan()
