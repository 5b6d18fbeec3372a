"""Arguments that people pass by mistake: labels, modes, rules, compiled networks, stacked batches."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

import firststep as fs
from firststep import functional
from networks import shallow_conv, shallow_task

TASK = shallow_task()  # three classes


def learner(**options: Any) -> fs.MetaLearner:
    return fs.MetaLearner(shallow_conv(), fs.maml(0.2), steps=1, **options)


def changed(labels: Tensor, value: int) -> Tensor:
    return torch.cat([labels[:-1], torch.tensor([value], dtype=labels.dtype)])


SUPPORT_USES: dict[str, Callable[[fs.MetaLearner, Tensor], object]] = {
    "call": lambda meta, y: meta([TASK._replace(support_y=y)]),
    "no_grad": lambda meta, y: torch.no_grad()(meta)([TASK._replace(support_y=y)]),
    "task_gradients": lambda meta, y: meta.task_gradients([TASK, TASK._replace(support_y=y)]),
    "adapt": lambda meta, y: meta.adapt(TASK.support_x, y),
    "auto": lambda meta, y: meta.adapt(TASK.support_x, y, steps="auto"),
    "condition_number": lambda meta, y: meta.condition_number(TASK.support_x, y),
    "iterate_steps": lambda meta, y: list(islice(meta.iterate_steps(TASK.support_x, y), 2)),
    "inner_step": lambda meta, y: functional.inner_step(
        functional.Learner(meta.functional, meta.rule), TASK.support_x, y
    ),
}


@pytest.mark.parametrize("use", SUPPORT_USES)
def test_support_labels_out_of_range(use: str) -> None:
    meta = learner()
    for value, message in {
        3: r"support set must be 0\.\.2, .* found 3",
        -1: "support set .* found -1",
        -100: "support set .* found -100: no sample is ignored",
    }.items():
        with pytest.raises(ValueError, match=message):
            SUPPORT_USES[use](meta, changed(TASK.support_y, value))


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize(("head", "value"), [("per-class", 3), ("per-class", -100), ("shared", -100)])
def test_query_labels_out_of_range(head: str, value: int, grad: bool) -> None:
    task = TASK._replace(query_y=changed(TASK.query_y, value))
    for tasks in ([task], [TASK, task]):
        with torch.set_grad_enabled(grad), pytest.raises(ValueError, match=f"query set .* found {value}"):
            learner(head=head)(tasks)


@pytest.mark.parametrize("use", SUPPORT_USES)
def test_labels_of_other_types(use: str) -> None:
    meta, labels = learner(), TASK.support_y
    for wrong in (labels.bool(), labels.float(), labels.to(torch.complex64), labels.tolist()):
        with pytest.raises(ValueError, match="must be a tensor of integers, one label per sample, not"):
            SUPPORT_USES[use](meta, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8])
def test_other_integers_are_labels(dtype: torch.dtype) -> None:
    task = TASK._replace(support_y=TASK.support_y.to(dtype), query_y=TASK.query_y.to(dtype))
    expected, found = learner()([TASK]), learner()([task])
    assert found.item() == expected.item()
    for use in SUPPORT_USES.values():
        use(learner(), task.support_y)


@pytest.mark.parametrize("use", [name for name in SUPPORT_USES if name != "condition_number"])
def test_inference_mode_is_refused(use: str) -> None:
    meta = learner()
    with torch.inference_mode(), pytest.raises(ValueError, match=r"use torch\.no_grad\(\)"):
        SUPPORT_USES[use](meta, TASK.support_y)
    with torch.inference_mode():
        x, y, *_ = (part.clone() for part in TASK)
    with pytest.raises(ValueError, match=r"was made in torch\.inference_mode"):
        meta([(x, TASK.support_y, *TASK[2:])])
    with pytest.raises(ValueError, match=r"was made in torch\.inference_mode.* clone\(\)"):
        SUPPORT_USES[use](meta, y)
    SUPPORT_USES[use](meta, y.clone())


def test_condition_numbers_in_inference_mode() -> None:
    """The classifier's has a closed form; those of other layers need gradients."""
    meta = learner()
    expected = meta.condition_number(*TASK[:2])
    with torch.inference_mode():
        torch.testing.assert_close(meta.condition_number(*TASK[:2]), expected)
        with pytest.raises(ValueError, match=r"use torch\.no_grad\(\)"):
            meta.condition_number(*TASK[:2], subset="all")


def test_a_network_made_in_inference_mode_is_refused() -> None:
    with torch.inference_mode():
        network = shallow_conv()
    with pytest.raises(ValueError, match=r"was made in torch\.inference_mode"):
        fs.MetaLearner(network)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (0.05, r"not 0\.05: the inner rate .* fs\.maml\(rate=0\.05\)"),
        (torch.optim.Adam, r"not Adam: an optimiser trains the outer loop: .*meta\.parameters"),
        (torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1), "an optimiser trains the outer loop"),
        (fs.meta_sgd, r"call it: fs\.meta_sgd\(\)"),
        (fs.build_method("maml"), r"pass its attribute \.rule"),
        ("maml", r"not 'maml': pass fs\.maml\(rate=0\.05\)"),
        (torch.zeros(2), r"pass fs\.maml\(rate=0\.05\)"),
    ],
    ids=["rate", "optimiser class", "optimiser", "function", "method", "name", "tensor"],
)
def test_what_is_no_rule(rule: Any, message: str) -> None:
    model = functional.FunctionalModule(shallow_conv())
    for use in (
        lambda: fs.MetaLearner(shallow_conv(), rule),
        lambda: functional.MetaGradient(model, rule),
        lambda: functional.adapt(functional.Learner(model, rule), *TASK[:2]),
    ):
        with pytest.raises(TypeError, match=f"rule must be a firststep Rule, .*{message}"):
            use()


def test_a_compiled_network_is_refused() -> None:
    inside = nn.Sequential(torch.compile(nn.Linear(4, 4), backend="eager"), nn.Linear(4, 3))
    in_place = shallow_conv()
    in_place.compile(backend="eager")
    for network in (torch.compile(shallow_conv(), backend="eager"), inside, in_place):
        with pytest.raises(ValueError, match=r"compiled by torch\.compile.*compile=True"):
            fs.MetaLearner(network)  # type: ignore[arg-type]


TASKS = [shallow_task(seed=seed) for seed in range(4)]


@pytest.mark.parametrize("batch_size", [1, 3, 4])
@pytest.mark.parametrize("form", [fs.Task, tuple])
def test_the_default_collation_of_a_loader_names_the_line_that_works(form: type, batch_size: int) -> None:
    tasks = TASKS if form is fs.Task else [tuple(task) for task in TASKS]
    stacked = next(iter(DataLoader(tasks, batch_size=batch_size)))  # type: ignore[arg-type]
    for use in (learner(), learner().task_gradients):
        with pytest.raises(ValueError, match=r"DataLoader\(dataset, batch_size=4, collate_fn=list\)"):
            use(stacked)
    batch = next(iter(DataLoader(tasks, batch_size=batch_size, collate_fn=list)))  # type: ignore[arg-type]
    assert learner()(batch).item() == learner()(TASKS[:batch_size]).item()
    assert learner()([list(task) for task in batch]).item() == learner()(batch).item()


def test_tasks_that_are_none() -> None:
    with pytest.raises(TypeError, match="tasks must be a list of tasks, not int"):
        learner()(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="support_y has no labels"):
        learner()([TASK._replace(support_x=TASK.support_x[:0], support_y=TASK.support_y[:0])])  # type: ignore[index]


def test_copies_keep_their_checks() -> None:
    with pytest.raises(ValueError, match="found -100"):
        copy.deepcopy(learner())([TASK._replace(query_y=changed(TASK.query_y, -100))])
