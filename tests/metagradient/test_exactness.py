"""The meta-gradient of every method against one plain autograd graph with dense Jacobians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from firststep import METHODS, Conditioning, MetaLearner, Method, Task, build_method, maml
from firststep.functional import FunctionalModule, Learner, meta_gradient
from firststep.metagradient import ENGINES, EngineOptions
from firststep.metagradient.eager import EagerSteps, StepInput
from firststep.metagradient.objective import Objective
from formulas import FORMULAS
from networks import OwnNetwork, perturbed_rule_params, shallow_conv, shallow_task, small_resnet
from reference import Params, total_error, unrolled_meta_gradient

SUBSETS = ["cls", "emb", "ebn", "cls+emb", "cls+ebn", "emb+ebn", "cls+emb+ebn", "all"]
TASK = shallow_task()
RATE = 0.2


def log_kappa(gram: torch.Tensor) -> torch.Tensor:
    values = torch.linalg.eigvalsh(gram)
    return (values[-1] / values[0]).log10()


def prepared(
    name: str, network: Callable[[], nn.Module] = shallow_conv
) -> tuple[Method, FunctionalModule, Params]:
    """Build a method for two steps, so that a third is beyond its horizon."""
    method = build_method(name, RATE, steps=2)
    model = FunctionalModule(method.prepare(network(), None))
    return method, model, perturbed_rule_params(method, model)


def reference(
    model: FunctionalModule,
    method: Method,
    task: Task = TASK,
    *,
    rule_params: Params | None = None,
    subset: str = "cls",
    **options: Any,
) -> tuple[torch.Tensor, Params, Params]:
    return unrolled_meta_gradient(
        model.module,
        task,
        FORMULAS[method.name](RATE),
        rule_params or {},
        moving=method.rule.moving(model),
        psi=model.subset(subset),
        first_order=method.rule.first_order,
        **options,
    )


def maml_reference(model: FunctionalModule, task: Task = TASK, **options: Any) -> tuple[torch.Tensor, Params]:
    loss, grads, _ = reference(model, build_method("maml", RATE), task, **options)
    return loss, grads


# Five steps for the plain rules, which the others share their engine with; beyond three, references get slow.
LENGTHS = [(name, steps) for name in METHODS for steps in (1, 3)] + [
    (name, 5) for name in ("maml", "anil", "boil")
]


@pytest.mark.parametrize(("name", "steps"), LENGTHS)
@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_every_method_and_length_and_its_parameters(name: str, steps: int, gamma: float) -> None:
    method, model, rule_params = prepared(name)
    loss, expected, expected_rule = reference(
        model, method, rule_params=rule_params, steps=steps, gamma=gamma
    )
    for engine in ENGINES:
        result = meta_gradient(
            Learner(model, method.rule, rule_params=rule_params),
            [TASK],
            steps=steps,
            conditioning=Conditioning(weight=gamma),
            options=EngineOptions(engine=engine),
        )
        assert result.loss.item() == pytest.approx(loss.item(), rel=1e-10)
        assert total_error(result.params, expected) < 1e-8
        assert total_error(result.rule_params, expected_rule) < 1e-8


@pytest.mark.parametrize("name", ["maml", "fomaml", "anil", "boil", "modgrad", "maml++"])
@pytest.mark.parametrize("engine", ENGINES)
def test_query_loss_after_every_step(name: str, engine: str) -> None:
    method, model, rule_params = prepared(name)
    weights = (0.5, 0.0, 0.2)
    options = {"steps": 3, "query_weights": weights}
    loss, expected, expected_rule = reference(model, method, rule_params=rule_params, gamma=1.0, **options)
    result = meta_gradient(
        Learner(model, method.rule, rule_params=rule_params),
        [TASK],
        conditioning=Conditioning(),
        options=EngineOptions(engine=engine),
        **options,
    )
    assert result.loss.item() == pytest.approx(loss.item(), rel=1e-10)
    assert total_error(result.params, expected) < 1e-8
    assert total_error(result.rule_params, expected_rule) < 1e-8
    # Without conditioning first-order descent needs no pull-back, yet earlier query losses still count.
    loss, expected, _ = reference(model, method, rule_params=rule_params, gamma=0.0, **options)
    result = meta_gradient(
        Learner(model, method.rule, rule_params=rule_params),
        [TASK],
        options=EngineOptions(engine=engine),
        **options,
    )
    assert total_error(result.params, expected) < 1e-8
    last = meta_gradient(
        Learner(model, method.rule, rule_params=rule_params),
        [TASK],
        options=EngineOptions(engine=engine),
        steps=3,
    )
    assert result.tasks[0].query_loss.item() == pytest.approx(last.loss.item(), rel=1e-10)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "warp-maml"])
def test_every_method_on_a_residual_network(name: str) -> None:
    method, model, rule_params = prepared(name, small_resnet)
    _, expected, expected_rule = reference(
        model, method, rule_params=rule_params, steps=2, gamma=1.0, subset="cls+emb"
    )
    conditioning = Conditioning(subset="cls+emb")
    result = meta_gradient(
        Learner(model, method.rule, rule_params=rule_params), [TASK], steps=2, conditioning=conditioning
    )
    assert total_error(result.params, expected) < 1e-8
    assert total_error(result.rule_params, expected_rule) < 1e-8


@pytest.mark.parametrize("name", ["warp-maml", "modgrad", "gap", "maml++"])
@pytest.mark.parametrize("subset", ["ebn", "all"])
def test_rivals_with_other_subsets(name: str, subset: str) -> None:
    method, model, rule_params = prepared(name)
    _, expected, expected_rule = reference(
        model, method, rule_params=rule_params, steps=2, gamma=1.0, subset=subset
    )
    conditioning = Conditioning(subset=subset)
    result = meta_gradient(
        Learner(model, method.rule, rule_params=rule_params), [TASK], steps=2, conditioning=conditioning
    )
    assert total_error(result.params, expected) < 1e-8
    assert total_error(result.rule_params, expected_rule) < 1e-8


PLAIN = ["maml", "anil", "boil", "fomaml"]
COVER = [
    (network, subset, PLAIN[(place + 2 * number) % 4])
    for number, network in enumerate((shallow_conv, small_resnet))
    for place, subset in enumerate(SUBSETS)
]
"""Every subset on both networks; two rules for each subset, and every rule on both networks."""


@pytest.mark.parametrize(("network", "subset", "rule"), COVER)
def test_every_subset(network: Callable[[], nn.Module], subset: str, rule: str) -> None:
    model = FunctionalModule(network())
    method = build_method(rule, RATE)
    _, expected, _ = reference(model, method, steps=3, gamma=1.0, subset=subset)
    result = meta_gradient(
        Learner(model, method.rule), [TASK], steps=3, conditioning=Conditioning(subset=subset)
    )
    assert total_error(result.params, expected) < 1e-8


def test_step_weights_gamma_and_the_ablation() -> None:
    model = FunctionalModule(shallow_conv())
    weights = (0.7, 0.0, 0.2)
    _, expected = maml_reference(
        model, steps=3, gamma=2.5, step_weights=weights, conditioning_loss=log_kappa, subset="cls"
    )
    conditioning = Conditioning(weight=2.5, step_weights=weights, loss="log-kappa")
    result = meta_gradient(Learner(model, maml(RATE)), [TASK], steps=3, conditioning=conditioning)
    assert total_error(result.params, expected) < 1e-8


@pytest.mark.parametrize("name", ["maml", "fomaml", "maml++", "gap", "momentum", "adam"])
def test_saving_all_some_or_none_of_the_steps_changes_nothing(name: str) -> None:
    method, model, rule_params = prepared(name)
    state = method.rule.initial_state(model, model.params())
    first = StepInput(model.params(), state, method.rule.at_step(rule_params, 0))
    steps = EagerSteps(Objective(model, method.rule, conditioning=Conditioning()))
    one_step = steps.saved_bytes(first, TASK.support_x, TASK.support_y)
    assert one_step > 0
    results = [
        meta_gradient(
            Learner(model, method.rule, rule_params=rule_params),
            [TASK],
            steps=3,
            conditioning=Conditioning(),
            options=EngineOptions(memory=memory),
        )
        for memory in (0, 2 * one_step, 2**40)
    ]
    for result in results[1:]:
        assert total_error(result.params, results[0].params) < 1e-12
        assert total_error(result.rule_params, results[0].rule_params) < 1e-12


def test_tasks_are_summed_and_reported_one_by_one() -> None:
    model = FunctionalModule(shallow_conv())
    tasks = [TASK, shallow_task(seed=8, shots=3), shallow_task(seed=9)]
    results = [maml_reference(model, task, steps=2, gamma=1.0) for task in tasks]
    together = meta_gradient(Learner(model, maml(RATE)), tasks, steps=2, conditioning=Conditioning())
    expected = {name: sum(grads[name] for _, grads in results) for name in model.params()}
    assert total_error(together.params, expected) < 1e-8
    for report, (loss, _) in zip(together.tasks, results, strict=True):
        assert (report.query_loss + report.conditioning).item() == pytest.approx(loss.item(), rel=1e-10)
        assert report.condition_numbers.shape == report.support_losses.shape == (2,)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_user_s_own_network(engine: str) -> None:
    """Layer norm, torch's batch norm in training mode with running statistics, a buffer, other names."""
    model = FunctionalModule(OwnNetwork().double(), classifier="head.out")
    _, expected = maml_reference(model, steps=3, gamma=1.0, subset="cls+ebn")
    result = meta_gradient(
        Learner(model, maml(RATE)),
        [TASK],
        steps=3,
        conditioning=Conditioning(subset="cls+ebn"),
        options=EngineOptions(engine=engine),
    )
    assert total_error(result.params, expected) < 1e-8


@pytest.mark.parametrize("subset", ["cls", "all"])
def test_float32_within_a_stated_tolerance(subset: str) -> None:
    """One part in a thousand: conditioning and five steps amplify float32's 1e-7 by at most 1e4 here."""
    model = FunctionalModule(shallow_conv())
    _, expected = maml_reference(model, steps=5, gamma=1.0, subset=subset)
    result = meta_gradient(
        Learner(FunctionalModule(shallow_conv(torch.float32)), maml(RATE)),
        [TASK.to(dtype=torch.float32)],
        steps=5,
        conditioning=Conditioning(subset=subset),
    )
    assert all(grad.dtype == torch.float32 for grad in result.params.values())
    assert total_error({name: grad.double() for name, grad in result.params.items()}, expected) < 1e-3


@pytest.mark.parametrize("engine", ENGINES)
def test_identical_support_images_give_a_finite_gradient(engine: str) -> None:
    images = TASK.support_x[:1].expand_as(TASK.support_x).clone()
    result = meta_gradient(
        Learner(FunctionalModule(shallow_conv()), maml(RATE)),
        [TASK._replace(support_x=images)],
        conditioning=Conditioning(),
        options=EngineOptions(engine=engine),
    )
    assert all(torch.isfinite(grad).all() for grad in result.params.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": []}, "tasks must not be empty"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"conditioning": Conditioning(step_weights=(1.0,))}, "one weight for each of the 5 steps, not 1"),
        ({"query_weights": (1.0,)}, "query_weights must be one number for each of the 5 steps"),
        ({"query_weights": (0, 0, 0, 0, float("nan"))}, "query_weights must be one number"),
        ({"conditioning": Conditioning(subset="bad")}, "unknown parameter subset 'bad'"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"tasks": [TASK], **options}
    with pytest.raises(ValueError, match=message):
        meta_gradient(Learner(FunctionalModule(shallow_conv()), maml()), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": -1}, "memory must be a number of bytes"),
        ({"engine": "magic"}, "unknown engine 'magic'; there are stepwise, unrolled"),
        ({"engine": "unrolled", "compile": True}, "compile works with engine='stepwise' only"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str) -> None:
    for make in (EngineOptions, lambda **options: MetaLearner(shallow_conv(), **options)):
        with pytest.raises(ValueError, match=message):
            make(**options)


def test_bad_values_are_named() -> None:
    with pytest.raises(ValueError, match="unknown method 'sgd'; there are: maml"):
        build_method("sgd")
    with pytest.raises(ValueError, match="rate must be a positive number"):
        maml(-1.0)
    with pytest.raises(ValueError, match="unknown conditioning loss 'kappa'; did you mean log-kappa"):
        Conditioning(loss="kappa")
    with pytest.raises(ValueError, match=r"weight .* must be a number >= 0"):
        Conditioning(weight=float("nan"))
