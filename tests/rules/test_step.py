"""One step of every method: against its plain formula, at its initial values, and what moves."""

from __future__ import annotations

from itertools import islice

import pytest
import torch
from torch import nn

from firststep import METHODS, Method, build_method, maml
from firststep.adaptation import iterate_steps
from firststep.functional import FunctionalModule, Learner, adapt, meta_gradient
from firststep.rules import scaled
from formulas import FORMULAS
from networks import OwnNetwork, generator, perturbed_rule_params, small_conv, small_task
from reference import Params, SupportLoss, total_error

TASK = small_task()
RATE = 0.3


def model_for(method: Method, module: nn.Module | None = None) -> FunctionalModule:
    return FunctionalModule(method.prepare(module or small_conv(), generator(3)))


def one_step(model: FunctionalModule, method: Method, rule_params: Params | None = None) -> Params:
    return adapt(
        Learner(model, method.rule, rule_params=rule_params), TASK.support_x, TASK.support_y, steps=1
    ).adapted


def support_loss(model: FunctionalModule, params: Params) -> torch.Tensor:
    logits = model(params, TASK.support_x).logits
    return nn.functional.cross_entropy(logits, TASK.support_y)


@pytest.mark.parametrize("name", METHODS)
def test_one_step_is_the_plain_formula(name: str) -> None:
    method = build_method(name, RATE)
    model = model_for(method)
    rule_params = perturbed_rule_params(method, model)
    params = model.params()
    moving = method.rule.moving(model)
    grads = torch.autograd.grad(support_loss(model, params), [params[key] for key in moving])
    expected = FORMULAS[name](RATE)(
        dict(zip(moving, grads, strict=True)),
        {key: params[key] for key in moving},
        rule_params,
        0,
        SupportLoss(lambda values: model(params | values, TASK.support_x).logits, TASK.support_y),
    )
    got = one_step(model, method, rule_params)
    assert total_error(got, params | expected) < 1e-9
    still = params.keys() - set(moving)
    assert all(torch.equal(got[key], params[key]) for key in still)


@pytest.mark.parametrize("name", ["fomaml", "meta-sgd", "meta-curvature", "gap"])
def test_initial_values_give_maml_s_step(name: str) -> None:
    method, model = build_method(name, RATE), FunctionalModule(small_conv())
    expected = one_step(model, build_method("maml", RATE))
    assert total_error(one_step(model, method), expected) < 1e-12


def test_maml_plus_plus_starts_as_maml_with_batch_norm_at_rest() -> None:
    model = FunctionalModule(small_conv())
    start, expected = model.params(), one_step(model, build_method("maml", RATE))
    rest = {name: start[name] if "norm" in name else value for name, value in expected.items()}
    assert total_error(one_step(model, build_method("maml++", RATE)), rest) < 1e-12


def test_modgrad_starts_near_gradient_descent_on_two_convolutions() -> None:
    model, method = FunctionalModule(small_conv()), build_method("modgrad", RATE)
    start, expected = model.params(), one_step(model, build_method("maml", RATE))
    got = one_step(model, method)
    assert method.rule.moving(model) == (
        *("blocks.2.conv.weight", "blocks.2.conv.bias"),
        *("blocks.3.conv.weight", "blocks.3.conv.bias"),
    )
    for name in ("blocks.2.conv.weight", "blocks.3.conv.weight"):
        plain, modulated = expected[name] - start[name], got[name] - start[name]
        assert ((modulated - plain).norm() / plain.norm()).item() < 0.25


@pytest.mark.parametrize("name", METHODS)
def test_initial_values_are_a_function_of_the_generator_alone(name: str) -> None:
    method = build_method(name, RATE)
    before = torch.get_rng_state()
    model = model_for(method)
    first, second = (method.rule.init(model, model.params(), generator(8)) for _ in range(2))
    default = method.rule.init(model, model.params())
    assert torch.equal(before, torch.get_rng_state())
    assert first.keys() == second.keys() == default.keys()
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert all(value.dtype == torch.float64 and not value.requires_grad for value in first.values())
    assert total_error(method.rule.init(model, model.params(), generator(0)), default) == 0


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_of_a_rule_is_learned(name: str) -> None:
    """Its meta-gradient is not 0, except for a bias whose own gradient batch norm makes 0."""
    method = build_method(name, RATE, steps=2)
    model = model_for(method)
    rule_params = perturbed_rule_params(method, model)
    result = meta_gradient(Learner(model, method.rule, rule_params=rule_params), [TASK], steps=2)
    assert result.rule_params.keys() == rule_params.keys()
    for key, grad in result.rule_params.items():
        assert grad.shape == rule_params[key].shape
        if not (key.startswith(("bias.blocks", "b.")) or "conv.bias" in key):
            assert grad.norm() > 1e-9, key


def test_warp_layers_rest_in_the_inner_loop_and_move_in_the_outer() -> None:
    method = build_method("warp-maml", RATE)
    model = model_for(method)
    start = model.params()
    warps = [name for name in start if name.startswith("warps.")]
    assert len(warps) == 3 * 4
    adapted = adapt(Learner(model, method.rule), TASK.support_x, TASK.support_y, steps=3).adapted
    assert all(torch.equal(adapted[name], start[name]) for name in warps)
    assert not torch.equal(adapted["blocks.0.conv.weight"], start["blocks.0.conv.weight"])
    gradient = meta_gradient(Learner(model, method.rule), [TASK], steps=3).params
    assert all(gradient[name].norm() > 1e-9 for name in warps if not name.endswith("conv.bias"))


def test_steps_beyond_the_horizon_use_the_last_step_s_parameters() -> None:
    short, model = build_method("maml++", RATE, steps=2), FunctionalModule(small_conv())
    rule_params = perturbed_rule_params(short, model)
    images, labels = TASK.support_x, TASK.support_y
    got = adapt(Learner(model, short.rule, rule_params=rule_params), images, labels, steps=5).adapted
    longer = {name: torch.cat([rows, rows[-1:], rows[-1:], rows[-1:]]) for name, rows in rule_params.items()}
    expected = adapt(Learner(model, short.rule, rule_params=longer), images, labels, steps=5).adapted
    assert total_error(got, expected) == 0
    walked = list(
        islice(iterate_steps(Learner(model, short.rule, model.params(), rule_params), images, labels), 5)
    )
    assert total_error(walked[-1][0], expected) == 0


@pytest.mark.parametrize("name", METHODS)
def test_a_user_s_own_network(name: str) -> None:
    """One convolution, torch's batch norm, layer norm, a linear layer of another name."""
    module = OwnNetwork().double()
    if name == "warp-maml":
        with pytest.raises(ValueError, match=r"defined for the Conv backbones, conv4 and conv6.*OwnNetwork"):
            build_method(name).prepare(module, None)
        return
    method, model = build_method(name, RATE), FunctionalModule(module, classifier="head.out")
    if name == "modgrad":
        with pytest.raises(ValueError, match=r"moves the last 2 convolutions .*OwnNetwork has 1"):
            meta_gradient(Learner(model, method.rule), [TASK])
        return
    result = meta_gradient(Learner(model, method.rule), [TASK], steps=2)
    assert all(torch.isfinite(grad).all() for grad in [*result.params.values(), *result.rule_params.values()])


def test_longer_steps() -> None:
    model = FunctionalModule(small_conv())
    images, labels = TASK.support_x, TASK.support_y
    twice = adapt(Learner(model, scaled(maml(RATE), 2.0)), images, labels, steps=1).adapted
    assert total_error(twice, one_step(model, build_method("maml", 2 * RATE))) < 1e-12
    # MAML++ still sets batch norm's scale and shift.
    method = build_method("maml++", RATE)
    rule_params = perturbed_rule_params(method, model)
    twice = adapt(
        Learner(model, scaled(method.rule, 2.0), rule_params=rule_params), images, labels, steps=1
    ).adapted
    torch.testing.assert_close(twice["blocks.0.norm.weight"], rule_params["norm.blocks.0.norm.weight"][0])


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_bad_rates_are_named(name: str, rate: float) -> None:
    with pytest.raises(ValueError, match="rate must be a positive number"):
        build_method(name, rate)


def test_bad_uses_are_named() -> None:
    with pytest.raises(ValueError, match="steps must be at least 1"):
        build_method("maml++", steps=0)
    with pytest.raises(
        ValueError, match=r"needs a network with warp layers: pass firststep\.warp\(network\)"
    ):
        meta_gradient(Learner(FunctionalModule(small_conv()), build_method("warp-maml").rule), [TASK])
    perceptron = nn.Sequential(nn.Flatten(), nn.Linear(256, 3)).double()
    for name, message in (
        ("gap", "needs a convolution that moves; Sequential has none"),
        ("modgrad", "Sequential has 0"),
    ):
        with pytest.raises(ValueError, match=message):
            meta_gradient(Learner(FunctionalModule(perceptron, "1"), build_method(name).rule), [TASK])
