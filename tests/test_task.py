"""Tasks: of tensors, tuples and dicts; moved as a whole; anything else is refused by name."""

from __future__ import annotations

from collections import UserDict

import pytest
import torch

from firststep import Task
from firststep.task import as_task
from networks import small_task

IDS, MASK, LABELS = torch.arange(6).view(2, 3), torch.ones(2, 3), torch.tensor([0, 1])


@pytest.mark.parametrize("inputs", [(IDS, MASK), {"ids": IDS, "mask": MASK}], ids=["tuple", "dict"])
def test_only_floating_inputs_change_their_type(inputs: object) -> None:
    moved = Task(inputs, LABELS, inputs, LABELS).to("cpu", torch.float64)  # type: ignore[arg-type]
    for parts in (moved.support_x, moved.query_x):
        assert type(parts) is type(inputs)
        ids, mask = parts.values() if isinstance(parts, dict) else parts  # type: ignore[misc]
        assert (ids.dtype, mask.dtype) == (torch.int64, torch.float64)
    assert moved.support_y.dtype == moved.query_y.dtype == torch.int64


def test_a_plain_tuple_is_a_task() -> None:
    task = small_task()
    assert as_task(task) == as_task(tuple(task))
    encoded = UserDict(ids=IDS, mask=MASK)  # as tokenizers return
    assert type(as_task((encoded, LABELS, IDS, LABELS)).support_x) is dict


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ((IDS, LABELS), r"a task is a Task or a tuple .*, not a tuple of 2"),
        (IDS, "not a Tensor; tasks is a sequence of them"),
        (([1, 2], LABELS, IDS, LABELS), "support_x must be a tensor, or a tuple or dict of them, not list"),
        ((IDS, MASK[:, 0], IDS, LABELS), "support_y must be a tensor of integers"),
        ((IDS, LABELS, IDS, IDS), "query_y must be a tensor of integers, one label per sample"),
    ],
)
def test_anything_else_is_refused(task: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_task(task)  # type: ignore[arg-type]
