"""One row for all classes: exact meta-gradients, any number of classes, and what softmax does not see."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

import firststep as fs
from firststep.functional import FunctionalModule, Learner, adapt
from firststep.methods import METHODS, build_method
from formulas import FORMULAS
from networks import generator, shallow_conv, shallow_task
from reference import SupportLoss, dense_gram, log_variance, naive_residuals, total_error

RATE, STEPS = 0.2, 2
ONE_ROW = ("shared", "zero")
NEVER_MOVE_THE_CLASSIFIER = ("boil", "modgrad")
# metal learns a loss of a fixed number of classes.
MOVING = [name for name in METHODS if name not in (*NEVER_MOVE_THE_CLASSIFIER, "metal")]
ROWS = ("network.classifier.weight", "network.classifier.bias")


def make(head: str, method: str = "maml", **options: Any) -> fs.MetaLearner:
    chosen = build_method(method, RATE, steps=STEPS)
    options = {"conditioning": fs.Conditioning(weight=0.5), "steps": STEPS, **options}
    meta = fs.MetaLearner(
        chosen.prepare(shallow_conv(), None), chosen.rule, head=head, generator=generator(11), **options
    )
    source = generator(12)
    with torch.no_grad():  # away from the special values that rules start at
        for value in meta.rule_params.values():
            value.add_(0.05 * torch.randn(value.shape, generator=source, dtype=value.dtype))
    return meta


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


def reference(meta: fs.MetaLearner, task: fs.Task, method: str, steps: int = STEPS) -> dict[str, Tensor]:
    """Compute by plain autograd, with repeated rows, an unrolled inner loop and dense Jacobians."""
    support, support_y, query, query_y = task
    ways = int(support_y.max()) + 1
    stored = {name: p.detach().clone().requires_grad_() for name, p in meta.network.named_parameters()}
    learned = [name for name, p in meta.network.named_parameters() if p.requires_grad]
    rule_params = {
        name.replace("/", "."): value.detach().clone().requires_grad_()
        for name, value in meta.rule_params.items()
    }
    # The rule's parameters for the rows: what one row has, every row has.
    spread = dict(rule_params)
    for name, value in rule_params.items():
        if "classifier" in name and meta.rule.name == "meta-sgd":
            spread[name] = torch.cat([value] * ways)
        elif name == "out.classifier":
            spread[name] = value * torch.eye(ways, dtype=value.dtype)
        elif name == "bias.classifier":
            spread[name] = torch.cat([value] * ways)
    theta = {
        name: torch.cat([p] * ways) if name.startswith("classifier") else p for name, p in stored.items()
    }
    moving = meta.rule.moving(meta.functional)
    psi = meta.functional.subset("cls")
    total = torch.zeros((), dtype=torch.float64)
    formula = FORMULAS[method](RATE)

    def loss_of(values: dict[str, Tensor], images: Any, labels: Tensor) -> Tensor:
        return F.cross_entropy(functional_call(meta.network, values, (images,)), labels)

    for k in range(steps):
        gram = dense_gram(
            lambda p: naive_residuals(functional_call(meta.network, p, (support,)), support_y), theta, psi
        )
        total = total + 0.5 / steps * log_variance(gram)
        loss = loss_of(theta, support, support_y)
        grads = torch.autograd.grad(loss, [theta[name] for name in moving], create_graph=True)
        if meta.rule.first_order:
            grads = tuple(grad.detach() for grad in grads)
        moved = formula(
            dict(zip(moving, grads, strict=True)),
            {name: theta[name] for name in moving},
            spread,
            k,
            SupportLoss(
                lambda values, theta=theta: functional_call(  # type: ignore[misc]
                    meta.network, theta | values, (support,)
                ),
                support_y,
            ),
        )
        theta = theta | moved
    total = total + loss_of(theta, query, query_y)
    leaves = {f"network.{name}": stored[name] for name in learned}
    leaves |= {f"rule_params.{name.replace('.', '/')}": value for name, value in rule_params.items()}
    grads = torch.autograd.grad(total, list(leaves.values()), allow_unused=True, materialize_grads=True)
    return dict(zip(leaves, grads, strict=True))


@pytest.mark.parametrize("head", ONE_ROW)
@pytest.mark.parametrize("method", MOVING)
def test_the_meta_gradient_is_that_of_plain_autograd(method: str, head: str) -> None:
    meta = make(head, method)
    task = shallow_task()
    meta([task]).backward()
    expected = reference(meta, task, method)
    assert total_error(gradients(meta), expected) < 1e-7
    # Stored is the one row, or nothing that is learned.
    learned = {name for name, p in meta.named_parameters() if p.requires_grad}
    assert (set(ROWS) <= learned) == (head == "shared")
    assert meta.network.get_parameter("classifier.weight").shape == (1, 16)


@pytest.mark.parametrize("options", [{"engine": "unrolled"}, {"memory": 0}, {"compile": True}])
@pytest.mark.parametrize("head", ONE_ROW)
def test_every_engine_gives_it(head: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # The traced graphs, run as they are: to compile them takes minutes and changes nothing here.
    monkeypatch.setattr(torch._inductor, "compile", lambda graph, _inputs, options: graph)
    # Of different numbers of classes, which are compiled one by one
    tasks = [shallow_task(seed=5), shallow_task(ways=4, seed=6)]
    expected, found = make(head), make(head, **options)
    expected(tasks).backward()
    found(tasks).backward()
    assert total_error(gradients(found), gradients(expected)) < 1e-9
    with torch.no_grad():
        assert found(tasks).item() == pytest.approx(expected(tasks).item(), rel=1e-9)


@pytest.mark.parametrize("subset", ["cls", "cls+emb", "all"])
def test_subsets_that_have_the_classifier(subset: str) -> None:
    meta = make("shared", conditioning=fs.Conditioning(subset=subset))
    other = make("shared", conditioning=fs.Conditioning(subset=subset), engine="unrolled")
    meta([shallow_task()]).backward()
    other([shallow_task()]).backward()
    assert total_error(gradients(meta), gradients(other)) < 1e-9


@pytest.mark.parametrize("head", ONE_ROW)
def test_what_has_no_gradient_at_the_start_is_refused(head: str) -> None:
    with pytest.raises(
        ValueError, match=r"nothing below the classifier has a gradient .* add cls to the subset"
    ):
        make(head, conditioning=fs.Conditioning(subset="emb"))
    for method in NEVER_MOVE_THE_CLASSIFIER:
        with pytest.raises(ValueError, match=f"the method {method} never moves the classifier"):
            make(head, method)
    with pytest.raises(
        ValueError, match="unknown head 'common'; there are per-class, shared, zero, prototypes"
    ):
        make("common")


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), ways=st.integers(2, 6), scale=st.floats(0.01, 3), steps=st.integers(0, 3))
def test_softmax_does_not_see_the_shared_vector(seed: int, ways: int, scale: float, steps: int) -> None:
    """Any shared vector gives the predictions of the zero head, and its own meta-gradient is 0."""
    task = shallow_task(ways=ways, seed=seed)
    shared, zero = make("shared"), make("zero")
    with torch.no_grad():
        for name in ("classifier.weight", "classifier.bias"):
            value = shared.network.get_parameter(name)
            value.copy_(scale * torch.randn(value.shape, generator=generator(seed), dtype=value.dtype))
    ours, theirs = (m.adapt(*task[:2], steps=steps)(task.query_x) for m in (shared, zero))
    torch.testing.assert_close(ours.softmax(-1), theirs.softmax(-1), rtol=1e-9, atol=1e-12)
    if steps == 0:
        torch.testing.assert_close(ours.softmax(-1), torch.full_like(ours, 1 / ways))
    shared([task]).backward()
    zero([task]).backward()
    found, expected = gradients(shared), gradients(zero)
    size = max(value.norm().item() for value in expected.values())
    for name in ROWS:
        assert found.pop(name).norm().item() < 1e-10 * max(1.0, size)
    assert total_error(found, expected) < 1e-8


@pytest.mark.parametrize("method", ["maml", "meta-sgd", "meta-curvature", "maml++", "anil"])
@pytest.mark.parametrize("ways", [2, 3, 7])
def test_any_number_of_classes(method: str, ways: int) -> None:
    meta, task = make("shared", method), shallow_task(ways=ways, seed=3)
    classifier = meta.adapt(*task[:2], steps=3)
    assert classifier(task.query_x).shape[1] == ways
    assert classifier.get_submodule("classifier").out_features == ways
    torch.testing.assert_close(
        classifier(task.support_x),
        meta.functional(meta.adapted_params(*task[:2], steps=3), task.support_x).logits,
    )
    assert meta.for_classes(ways) is meta
    assert meta.choose_steps(*task[:2]).folds == 2
    assert meta.condition_number(*task[:2]) > 1


def test_exchanging_classes_exchanges_the_answers() -> None:
    """No class is favoured: renaming them renames the predictions."""
    meta, task = make("shared", "meta-curvature"), shallow_task(ways=4)
    order = torch.tensor([2, 0, 3, 1])
    plain = meta.adapt(task.support_x, task.support_y)(task.query_x)
    renamed = meta.adapt(task.support_x, order[task.support_y])(task.query_x)
    torch.testing.assert_close(renamed[:, order], plain)


def test_rows_of_a_classifier_per_class() -> None:
    """Fewer classes take the first rows, and the rule's parameters for them; more are refused."""
    for method in ("maml", "meta-sgd", "meta-curvature"):
        meta, task = make("per-class", method), shallow_task(ways=2)
        fewer = meta.for_classes(2)
        assert fewer is not meta
        assert meta.num_classes == 3
        assert fewer.num_classes == 2
        assert fewer.adapt(*task[:2])(task.query_x).shape[1] == 2
        rows = meta.network.get_parameter("classifier.weight")[:2]
        assert torch.equal(fewer.network.get_parameter("classifier.weight"), rows)
        assert meta.for_classes(3) is meta
    rates = make("per-class", "meta-sgd")
    expected = rates.rule_params["rate/classifier/weight"][:2]
    assert torch.equal(rates.for_classes(2).rule_params["rate/classifier/weight"], expected)
    with pytest.raises(ValueError, match=r"learned 3 classifier rows.* train with head shared, zero"):
        rates.for_classes(4)
    with pytest.raises(ValueError, match="at least 2 classes"):
        rates.for_classes(1)


@pytest.mark.parametrize("head", ONE_ROW)
def test_one_class_is_no_task(head: str) -> None:
    task = shallow_task(ways=2)
    with pytest.raises(ValueError, match="a task needs at least 2 classes"):
        make(head).adapt(task.support_x, torch.zeros_like(task.support_y))


@pytest.mark.parametrize("head", ONE_ROW)
def test_state_dict_copy_and_pickle(head: str, tmp_path: Path) -> None:
    meta = make(head, "meta-sgd")
    with torch.no_grad():
        for p in meta.parameters():
            if p.requires_grad:
                p.add_(0.01)
    loss = meta([shallow_task()]).item()
    torch.save(meta.state_dict(), tmp_path / "meta.pt")
    fresh = make(head, "meta-sgd")
    fresh.load_state_dict(torch.load(tmp_path / "meta.pt", weights_only=True))
    for other in (fresh, copy.deepcopy(meta), pickle.loads(pickle.dumps(meta))):
        assert other([shallow_task()]).item() == loss
        other([shallow_task()]).backward()
        torch.optim.Adam(other.parameters(), 0.1).step()
    if head == "zero":
        assert not fresh.network.get_parameter("classifier.weight").any()


@pytest.mark.parametrize("head", ONE_ROW)
def test_gradients_of_single_tasks_add_up(head: str) -> None:
    tasks = [shallow_task(seed=5), shallow_task(seed=6)]
    meta = make(head)
    meta(tasks).backward()
    each = meta.task_gradients(tasks)
    for name, value in gradients(meta).items():
        torch.testing.assert_close(sum(one.gradients[name] for one in each), value)
    assert (ROWS[0] in each[0].gradients) == (head == "shared")


def test_the_functional_layer_repeats_the_row() -> None:
    model = FunctionalModule(shallow_conv(), head="shared")
    task = shallow_task(ways=4)
    trajectory = adapt(Learner(model, fs.maml(RATE)), *task[:2], steps=1)
    assert trajectory.params[0]["classifier.weight"].shape[0] == 4
    rows = trajectory.params[0]["classifier.weight"]
    assert torch.equal(rows, rows[:1].expand_as(rows))
    gram = fs.functional.support_gram(model, *task[:2])
    expected = dense_gram(
        lambda p: naive_residuals(functional_call(model.module, p, (task.support_x,)), task.support_y),
        {n: v.clone().requires_grad_() for n, v in trajectory.params[0].items()},
        model.subset("cls"),
    )
    torch.testing.assert_close(gram, expected)
