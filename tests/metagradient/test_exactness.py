"""The stepwise meta-gradient against one plain autograd graph with dense Jacobians."""

from __future__ import annotations

import pytest
import torch

from firststep import RULES, Conditioning, Learner, Task, build_rule, meta_gradient
from firststep.metagradient import ENGINES
from networks import OwnNetwork, small_conv, small_resnet, small_task
from reference import total_error, unrolled_meta_gradient

SUBSETS = ["cls", "emb", "ebn", "cls+emb", "cls+ebn", "emb+ebn", "cls+emb+ebn", "all"]
TASK = small_task()
RATE = 0.2


def log_kappa(gram: torch.Tensor) -> torch.Tensor:
    values = torch.linalg.eigvalsh(gram)
    return (values[-1] / values[0]).log10()


def reference(learner: Learner, rule: str, task: Task = TASK, **options: object) -> tuple[torch.Tensor, dict]:
    subset = options.pop("subset", "cls")
    built = build_rule(rule, RATE)
    return unrolled_meta_gradient(
        learner.module,
        task,
        rate=RATE,
        moving=learner.subset(built.moves),
        psi=learner.subset(subset),  # type: ignore[arg-type]
        first_order=built.first_order,
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("steps", [1, 3, 5])
@pytest.mark.parametrize("gamma", [0.0, 1.0])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_rule_and_length(rule: str, steps: int, gamma: float, engine: str) -> None:
    learner = Learner(small_conv())
    loss, expected = reference(learner, rule, steps=steps, gamma=gamma)
    result = meta_gradient(
        learner,
        build_rule(rule, RATE),
        [TASK],
        steps=steps,
        conditioning=Conditioning(weight=gamma),
        engine=engine,
    )
    assert result.loss.item() == pytest.approx(loss.item(), rel=1e-10)
    assert total_error(result.params, expected) < 1e-8
    assert result.own == {}


@pytest.mark.parametrize("network", [small_conv, small_resnet])
@pytest.mark.parametrize("subset", SUBSETS)
@pytest.mark.parametrize("rule", ["maml", "anil", "boil", "fomaml"])
def test_every_subset(network: object, subset: str, rule: str) -> None:
    learner = Learner(network())  # type: ignore[operator]
    _, expected = reference(learner, rule, steps=3, gamma=1.0, subset=subset)
    result = meta_gradient(
        learner, build_rule(rule, RATE), [TASK], steps=3, conditioning=Conditioning(subset=subset)
    )
    assert total_error(result.params, expected) < 1e-8


def test_step_weights_gamma_and_the_ablation() -> None:
    learner = Learner(small_conv())
    weights = (0.7, 0.0, 0.2)
    _, expected = reference(
        learner, "maml", steps=3, gamma=2.5, step_weights=weights, stage_loss=log_kappa, subset="cls"
    )
    conditioning = Conditioning(weight=2.5, step_weights=weights, loss="log-kappa")
    result = meta_gradient(learner, build_rule("maml", RATE), [TASK], steps=3, conditioning=conditioning)
    assert total_error(result.params, expected) < 1e-8


def test_tasks_are_summed_and_reported_one_by_one() -> None:
    learner = Learner(small_conv())
    tasks = [TASK, small_task(seed=8, shots=3), small_task(seed=9)]
    results = [reference(learner, "maml", task, steps=2, gamma=1.0) for task in tasks]
    together = meta_gradient(learner, build_rule("maml", RATE), tasks, steps=2, conditioning=Conditioning())
    expected = {name: sum(grads[name] for _, grads in results) for name in learner.params()}
    assert total_error(together.params, expected) < 1e-8
    for report, (loss, _) in zip(together.tasks, results, strict=True):
        assert (report.query_loss + report.conditioning).item() == pytest.approx(loss.item(), rel=1e-10)
        assert report.condition_numbers.shape == report.support_losses.shape == (2,)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_user_s_own_network(engine: str) -> None:
    """Layer norm, torch's batch norm in training mode with running statistics, a buffer, other names."""
    learner = Learner(OwnNetwork().double(), classifier="head.out")
    _, expected = reference(learner, "maml", steps=3, gamma=1.0, subset="cls+ebn")
    result = meta_gradient(
        learner,
        build_rule("maml", RATE),
        [TASK],
        steps=3,
        conditioning=Conditioning(subset="cls+ebn"),
        engine=engine,
    )
    assert total_error(result.params, expected) < 1e-8


@pytest.mark.parametrize("subset", ["cls", "all"])
def test_float32_within_a_stated_tolerance(subset: str) -> None:
    """One part in a thousand: conditioning and five steps amplify float32's 1e-7 by at most 1e4 here."""
    learner = Learner(small_conv())
    _, expected = reference(learner, "maml", steps=5, gamma=1.0, subset=subset)
    result = meta_gradient(
        Learner(small_conv(torch.float32)),
        build_rule("maml", RATE),
        [TASK.to(dtype=torch.float32)],
        steps=5,
        conditioning=Conditioning(subset=subset),
    )
    assert all(grad.dtype == torch.float32 for grad in result.params.values())
    assert total_error({name: grad.double() for name, grad in result.params.items()}, expected) < 1e-3


@pytest.mark.parametrize("engine", ENGINES)
def test_identical_support_images_give_a_finite_gradient(engine: str) -> None:
    images = TASK.support_images[:1].expand_as(TASK.support_images).clone()
    result = meta_gradient(
        Learner(small_conv()),
        build_rule("maml", RATE),
        [TASK._replace(support_images=images)],
        conditioning=Conditioning(),
        engine=engine,
    )
    assert all(torch.isfinite(grad).all() for grad in result.params.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": []}, "tasks must not be empty"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"engine": "magic"}, "unknown engine 'magic'; there are stepwise, unrolled"),
        ({"engine": "unrolled", "compile": True}, "compile works with engine='stepwise' only"),
        ({"conditioning": Conditioning(step_weights=(1.0,))}, "one weight for each of the 5 steps, not 1"),
        ({"conditioning": Conditioning(subset="bad")}, "unknown parameter subset 'bad'"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"tasks": [TASK], **options}
    with pytest.raises(ValueError, match=message):
        meta_gradient(Learner(small_conv()), build_rule("maml"), **arguments)  # type: ignore[arg-type]


def test_bad_values_are_named() -> None:
    with pytest.raises(ValueError, match="unknown method 'sgd'; there are maml"):
        build_rule("sgd")
    with pytest.raises(ValueError, match="rate must be a positive number"):
        build_rule("maml", -1.0)
    with pytest.raises(ValueError, match="unknown conditioning loss 'kappa'; there are variance, log-kappa"):
        Conditioning(loss="kappa")
    with pytest.raises(ValueError, match=r"weight .* must be a number >= 0"):
        Conditioning(weight=float("nan"))
