"""Rules from functions and from other rules, against one plain autograd graph."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from torch import Tensor

import firststep as fs
from firststep.functional import FunctionalModule, Learner, adapt, meta_gradient
from firststep.metagradient import ENGINES, EngineOptions
from firststep.methods import count_parameters
from firststep.rules import register_method, scaled
from formulas import FORMULAS
from networks import perturbed_rule_params, shallow_conv, shallow_task
from reference import Formula, Params, total_error, unrolled_meta_gradient

TASK = shallow_task()
RATE = 0.2
BOUND = 0.05  # far below the norm of the gradients of TASK


def clipped(grads: Params, bound: float) -> Params:
    norm = torch.cat([grad.reshape(-1) for grad in grads.values()]).norm()
    return {name: grad * torch.minimum(torch.ones(()), bound / norm) for name, grad in grads.items()}


def clipped_meta_sgd(grads: Params, values: Params, rule_params: Params, k: int, loss: object) -> Params:
    short = clipped(grads, BOUND)
    return {name: values[name] - rule_params[f"1.rate.{name}"] * short[name] for name in values}


def gap_of_meta_sgd(grads: Params, values: Params, rule_params: Params, k: int, loss: object) -> Params:
    """Compose two rules with parameters: learned rates, then a learned scale along singular directions."""

    def transformed(name: str) -> Tensor:
        grad = -rule_params[f"0.rate.{name}"] * grads[name]
        if f"1.m.{name}" not in rule_params:
            return grad
        matrix = grad.reshape(len(grad), -1)
        u = torch.linalg.svd(matrix.detach(), full_matrices=False).U
        scale = torch.log(1 + torch.exp(2 * rule_params[f"1.m.{name}"])) / 2
        return (u @ torch.diag(scale) @ u.T @ matrix).reshape(grad.shape)

    return {name: values[name] - RATE * transformed(name) for name in values}


def rates_per_step(grads: Params, values: Params, rule_params: Params, k: int, loss: object) -> Params:
    short, row = clipped(grads, BOUND), min(k, 1)
    return {
        name: rule_params[f"1.norm.{name}"][row]
        if "norm" in name
        else values[name] - rule_params["1.rate." + name.rpartition(".")[0]][row] * short[name]
        for name in values
    }


def own(rule_params: Params, number: int) -> Params:
    return {n.partition(".")[2]: v for n, v in rule_params.items() if n.startswith(f"{number}.")}


def alfa_of_metal(grads: Params, values: Params, rule_params: Params, k: int, loss: Any) -> Params:
    """Compose the authors' ALFA+MeTAL: the learned loss's gradient, with generated rates and decay."""
    moved = FORMULAS["metal"](1.0)(grads, values, own(rule_params, 0), min(k, 1), loss)
    learned = {name: values[name] - moved[name] for name in values}
    return FORMULAS["alfa"](RATE)(learned, values, own(rule_params, 1), min(k, 1), loss)


def meta_sgd_per_step(grads: Params, values: Params, rule_params: Params, k: int, loss: Any) -> Params:
    """Compose rates for all steps, then rates per step."""
    longer = {name: rule_params[f"0.rate.{name}"] * grads[name] for name in values}
    return FORMULAS["maml++"](RATE)({n: -g for n, g in longer.items()}, values, own(rule_params, 1), k, loss)


CHAINS: dict[str, tuple[fs.Rule, Formula]] = {
    "clipped meta-sgd": (fs.chain(fs.clip_by_norm(BOUND), fs.meta_sgd(RATE)), clipped_meta_sgd),
    "meta-sgd, then gap": (fs.chain(fs.meta_sgd(RATE), fs.gap(RATE)), gap_of_meta_sgd),
    "clipped maml++": (
        fs.chain(fs.clip_by_norm(BOUND), fs.maml_plus_plus(RATE, steps=2)),
        rates_per_step,
    ),
    "alfa of metal": (fs.chain(fs.metal(None, steps=2), fs.alfa(RATE, steps=2)), alfa_of_metal),
    "meta-sgd, then maml++": (
        fs.chain(fs.meta_sgd(RATE), fs.maml_plus_plus(RATE, steps=2)),
        meta_sgd_per_step,
    ),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_meta_gradient_of_a_chain_is_exact(name: str, engine: str) -> None:
    """Three steps, one beyond the two that maml++ has parameters for."""
    rule, formula = CHAINS[name]
    rule = pickle.loads(pickle.dumps(rule))
    model = FunctionalModule(shallow_conv())
    rule_params = perturbed_rule_params(fs.Method(rule=rule), model, spread=0.02)
    assert rule_params
    loss, expected, expected_rule = unrolled_meta_gradient(
        model.module, TASK, formula, rule_params, steps=3, moving=rule.moving(model), psi=model.subset("cls"),
        gamma=1.0,
    )  # fmt: skip
    result = meta_gradient(
        Learner(model, rule, rule_params=rule_params),
        [TASK],
        steps=3,
        conditioning=fs.Conditioning(),
        options=EngineOptions(engine=engine),
    )
    assert result.loss.item() == pytest.approx(loss.item(), rel=1e-10)
    assert total_error(result.params, expected) < 1e-8
    assert total_error(result.rule_params, expected_rule) < 1e-8


def test_a_chain_learns_and_stores_its_parameters_under_their_own_names() -> None:
    rule = fs.chain(fs.clip_by_norm(BOUND), fs.meta_sgd(RATE, moves="cls"))
    meta = fs.MetaLearner(shallow_conv(), rule, steps=2)
    assert set(meta.state_dict()) >= {"rule_params.1/rate/classifier/weight"}
    meta([TASK]).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in meta.rule_params.values())
    assert count_parameters(fs.Method(rule=rule), shallow_conv()).added == 3 * 17


def test_a_short_gradient_is_left_alone_and_a_zero_gradient_has_a_gradient() -> None:
    model = FunctionalModule(shallow_conv())
    plain = adapt(Learner(model, fs.maml(RATE)), *TASK[:2], steps=2).adapted
    loose = adapt(
        Learner(model, fs.chain(fs.clip_by_norm(1000.0), fs.maml(RATE))), *TASK[:2], steps=2
    ).adapted
    assert all(torch.equal(loose[name], plain[name]) for name in plain)
    grads = {"weight": torch.zeros(3, dtype=torch.float64, requires_grad=True)}
    step = fs.clip_by_norm(1.0).update(grads, grads, {}, None)["weight"]  # type: ignore[arg-type]
    (gradient,) = torch.autograd.grad(step.sum(), grads["weight"])
    assert torch.equal(gradient, torch.ones(3, dtype=torch.float64))


def signs(grads: Params, params: Params) -> Params:
    return {name: -0.01 * torch.tanh(5 * grad) - 0.1 * params[name] for name, grad in grads.items()}


def test_a_function_becomes_a_rule() -> None:
    rule = pickle.loads(pickle.dumps(fs.stateless(signs, moves="cls")))
    assert rule.name == "signs"
    model = FunctionalModule(shallow_conv())
    loss, expected, _ = unrolled_meta_gradient(
        model.module,
        TASK,
        lambda grads, values, *_: {name: values[name] + step for name, step in signs(grads, values).items()},
        {},
        steps=2,
        moving=model.subset("cls"),
        psi=model.subset("cls"),
        gamma=0.0,
    )
    result = meta_gradient(Learner(model, rule), [TASK], steps=2)
    assert result.loss.item() == pytest.approx(loss.item(), rel=1e-10)
    assert total_error(result.params, expected) < 1e-8


def test_a_function_with_state_is_refused_in_a_chain_too() -> None:
    calls: list[int] = []

    def counts(grads: Params, params: Params) -> Params:
        calls.append(1)
        return {name: len(calls) * grad for name, grad in grads.items()}

    rule = fs.chain(fs.stateless(counts), fs.maml(RATE))
    with pytest.raises(ValueError, match=r"'counts \| maml' gives different steps for the same gradient"):
        adapt(Learner(FunctionalModule(shallow_conv()), rule), *TASK[:2], steps=1)


def test_what_cannot_be_chained_is_refused() -> None:
    model = FunctionalModule(shallow_conv())
    with pytest.raises(ValueError, match="at least one rule"):
        fs.chain()
    with pytest.raises(ValueError, match="metal and metal both make the inner loss"):
        fs.chain(fs.metal(None), fs.metal(RATE))
    with pytest.raises(ValueError, match=r"maml moves blocks\.0\.conv\.weight, which anil does not move"):
        fs.chain(fs.anil(RATE), fs.maml(RATE)).moving(model)
    with pytest.raises(ValueError, match="bound must be a positive number"):
        fs.clip_by_norm(0)
    assert fs.chain(fs.clip_by_norm(1.0), fs.fomaml(RATE)).first_order


def test_the_last_rule_decides_what_moves_and_a_scaled_chain_takes_longer_steps() -> None:
    model = FunctionalModule(shallow_conv())
    chained = fs.chain(fs.meta_sgd(1.0), fs.anil(RATE))
    assert chained.moving(model) == model.subset("cls")
    start = model.params()["classifier.bias"]
    once = adapt(Learner(model, chained), *TASK[:2], steps=1).adapted["classifier.bias"] - start
    twice = adapt(Learner(model, scaled(chained, 2)), *TASK[:2], steps=1).adapted["classifier.bias"] - start
    torch.testing.assert_close(twice, 2 * once)


@pytest.mark.usefixtures("clean_registries")
def test_a_registered_chain_is_a_method() -> None:
    @register_method("clipped-sgd")
    def clipped_sgd(rate: float = 0.3) -> fs.Rule:
        return fs.chain(fs.clip_by_norm(1.0), fs.meta_sgd(rate), name="clipped-sgd")

    assert fs.build_method("clipped-sgd").name == "clipped-sgd"
    model = FunctionalModule(shallow_conv())
    made = fs.build_method("clipped-sgd").rule.init(model, model.params())
    assert made["1.rate.classifier.bias"].unique().tolist() == [0.3]
