"""Tasks side by side on threads: the numbers of one thread, in the tasks' order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from firststep import Conditioning, MetaLearner, Task, build_method, maml
from firststep.evaluation import measure_tasks
from firststep.functional import EngineOptions, FunctionalModule, Learner, MetaGradient, meta_gradient
from firststep.network import Replicas, Sharing, in_order, share_threads
from formulas import FORMULAS
from networks import perturbed_rule_params, shallow_conv, shallow_task, small_conv, small_task
from reference import total_error, unrolled_meta_gradient

RATE = 0.2
TASKS = [small_task(seed=seed) for seed in range(5)]


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def on_one_thread(compute: MetaGradient, params: dict[str, torch.Tensor], tasks: list[Task]) -> list[object]:
    torch.set_num_threads(1)
    found = compute.each(params, {}, tasks)
    torch.set_num_threads(2)
    return found


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("two_threads")
def test_exact_and_bit_for_bit_those_of_one_thread(compile: bool) -> None:
    model, tasks = FunctionalModule(shallow_conv()), [shallow_task(seed=seed) for seed in range(5)]
    compute = MetaGradient(
        model, maml(RATE), steps=2, conditioning=Conditioning(), options=EngineOptions(compile=compile)
    )
    params = model.params()
    together = compute.each(params, {}, tasks)
    alone = on_one_thread(compute, params, tasks)
    for one, other, task in zip(together, alone, tasks, strict=True):
        assert one.loss == other.loss
        assert all(torch.equal(one.params[name], other.params[name]) for name in params)
        loss, expected, _ = unrolled_meta_gradient(
            model.module,
            task,
            FORMULAS["maml"](RATE),
            {},
            moving=build_method("maml", RATE).rule.moving(model),
            psi=model.subset("cls"),
            steps=2,
            gamma=1.0,
        )
        assert one.loss.item() == pytest.approx(loss.item(), rel=1e-9)
        assert total_error(one.params, expected) < 1e-7
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("name", ["meta-sgd", "modgrad", "maml++"])
@pytest.mark.usefixtures("two_threads")
def test_rules_with_parameters_of_their_own(name: str) -> None:
    method = build_method(name, RATE, steps=2)
    model = FunctionalModule(method.prepare(small_conv(), None))
    rule_params = perturbed_rule_params(method, model)
    together = meta_gradient(Learner(model, method.rule, rule_params=rule_params), TASKS, steps=2)
    torch.set_num_threads(1)
    alone = meta_gradient(Learner(model, method.rule, rule_params=rule_params), TASKS, steps=2)
    assert all(torch.equal(together.params[n], alone.params[n]) for n in alone.params)
    assert all(torch.equal(together.rule_params[n], alone.rule_params[n]) for n in alone.rule_params)


@pytest.mark.usefixtures("two_threads")
def test_evaluation_gives_the_numbers_of_one_thread() -> None:
    meta = MetaLearner(small_conv(), maml(RATE))
    together = measure_tasks(meta, TASKS, steps=(0, 1, 3))
    torch.set_num_threads(1)
    alone = measure_tasks(meta, TASKS, steps=(0, 1, 3))
    one_by_one = [measure_tasks(meta, [task], steps=(3,)) for task in TASKS]
    for metric, values in alone.values.items():
        assert (together.values[metric] == values).all()
        assert [found.values[metric][0, 0] for found in one_by_one] == pytest.approx(values[:, 2].tolist())


@pytest.mark.usefixtures("two_threads")
def test_results_keep_their_order_and_the_first_error_is_raised() -> None:
    sharing = Sharing(2, 1)
    assert list(in_order(lambda number: number**2, range(50), sharing)) == [n**2 for n in range(50)]

    def fail(number: int) -> int:
        assert torch.get_num_threads() == 1
        if number >= 3:
            raise ValueError(f"number {number}")
        return number

    results = in_order(fail, range(50), sharing)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="number 3"):
        next(results)
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_large_tasks_have_all_threads_for_themselves() -> None:
    assert share_threads(10, 100) == Sharing(2, 1)
    assert share_threads(60, 100) == Sharing(1, 2)
    assert share_threads(1000, 100) == Sharing(1, 2)


def test_copies_share_the_tensors_and_not_the_module() -> None:
    model = FunctionalModule(small_conv())
    seen: list[FunctionalModule] = []
    Replicas(model, model.module, Sharing(2, 1)).use(seen.append)
    (copied,) = seen
    assert copied.module is not model.module
    assert all(value is copied.params()[name] for name, value in model.params().items())


def test_what_cannot_be_copied_runs_on_one_worker() -> None:
    model = FunctionalModule(small_conv())
    model.module.generator = (number for number in range(3))
    assert Replicas(model, model.module, Sharing(2, 1)).sharing.workers == 1
