"""Inputs of several tensors and outputs of every form, in all that a MetaLearner does."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from firststep import MetaLearner, Task, maml
from third_party import of_third_party
from zoo import TwoInputs, in_zoo, task_of, two_inputs


def as_dict(task: Task) -> Task:
    names = ("ids", "numbers")
    return task._replace(
        support_x=dict(zip(names, task.support_x, strict=True)),
        query_x=dict(zip(names, task.query_x, strict=True)),
    )


def results(meta: MetaLearner, task: Task) -> list[Tensor]:
    """Call everything that takes inputs."""
    x, y = task.support_x, task.support_y
    loss = meta([task])
    loss.backward()
    with torch.no_grad():
        again = meta([task])
    gradient = next(iter(meta.network.parameters())).grad
    adapted = meta.adapt(x, y, steps="auto")
    after = next(iter(adapted.parameters()))
    number = meta.condition_number(x, y, subset="cls+emb")
    steps = iter(meta.iterate_steps(x, y))
    later = [next(steps) for _ in range(3)][-1]["classifier.weight"]
    alone = meta.task_gradients([task])[0].gradients["network.classifier.weight"]
    return [loss.detach(), again, gradient, after.detach(), number, later, alone]


def test_a_tuple_and_a_dict_of_inputs_give_the_same() -> None:
    found = []
    for form in (lambda task: task, as_dict):
        network, task = in_zoo("two-inputs")
        found.append(results(MetaLearner(network, maml(0.3), steps=2), form(task)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


class Encoding(dict):
    """A mapping of its own type, like a tokenizer's result."""


def test_mappings_of_other_types_and_moving_a_task() -> None:
    network, task = in_zoo("transformer-masked")
    other = task._replace(support_x=Encoding(task.support_x), query_x=Encoding(task.query_x))
    meta = MetaLearner(network, maml(0.3), steps=2)
    assert meta([other]).item() == meta([task]).item()
    moved = as_dict(task_of(two_inputs)).to("meta", torch.float32)
    for inputs in (moved.support_x, moved.query_x):
        assert {name: (part.device.type, part.dtype) for name, part in inputs.items()} == {
            "ids": ("meta", torch.int64),
            "numbers": ("meta", torch.float32),
        }
    assert moved.support_y.device.type == moved.query_y.device.type == "meta"


@pytest.mark.parametrize("name", ["hf-bert", "hf-vit"])
def test_networks_of_hugging_face_as_they_are_used(name: str) -> None:
    network, task = of_third_party(name)
    results(MetaLearner(network, maml(0.05), steps=2), task)


def test_inputs_that_do_not_fit_say_what_to_pass() -> None:
    _, task = in_zoo("two-inputs")
    meta = MetaLearner(TwoInputs().double())
    ids = task.support_x[0]
    for use in (
        lambda: meta([(ids, task.support_y, ids, task.support_y)]),
        lambda: meta.adapt(ids, task.support_y),
        lambda: meta.condition_number({"ids": ids, "figures": ids}, task.support_y),
    ):
        with pytest.raises(
            ValueError,
            match=r"TwoInputs\.forward does not take these inputs \(.*(numbers|figures).*a tuple of its",
        ):
            use()
    with pytest.raises(ValueError, match="support_x must be a tensor, or a tuple or dict of them, not list"):
        meta([([ids, ids], task.support_y, ids, task.support_y)])


def test_an_output_without_logits_says_what_is_wanted() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.classifier = nn.Linear(5, 3)

        def forward(self, points: Tensor) -> dict[str, Tensor]:
            return {"scores": self.classifier(points)}

    meta = MetaLearner(Odd())
    with pytest.raises(ValueError, match=r"output must be logits \[n, classes\], not dict"):
        meta.adapt(torch.randn(6, 5), torch.arange(3).repeat(2))
