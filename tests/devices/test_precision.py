"""bfloat16 for the network's passes: how exact it is, what stays exact, and where it is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from device_cases import conv, images_task
from firststep import Conditioning, MetaLearner, Task, maml
from networks import generator
from zoo import task_of, vectors


def smooth() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3))


def task() -> Task:
    return task_of(vectors).to(dtype=torch.float32)


def gradient(dtype: torch.dtype = torch.float32, **options: Any) -> Tensor:
    meta = MetaLearner(smooth().to(dtype), maml(0.1), steps=3, conditioning=Conditioning(), **options)
    meta([task().to(dtype=dtype)]).backward()
    assert all(value.grad is not None and value.grad.dtype == dtype for value in meta.parameters())
    return torch.cat([value.grad.flatten() for value in meta.parameters() if value.grad is not None])


@pytest.mark.parametrize("options", [{}, {"memory": 0}, {"engine": "unrolled"}], ids=str)
def test_the_error_is_that_of_eight_bits(options: dict[str, Any]) -> None:
    exact = gradient(torch.float64)
    error = (gradient(precision="bf16", **options) - exact).norm() / exact.norm()
    assert 1e-4 < error < 0.05


def test_autocast_around_a_call_is_the_same() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        found = gradient()
    assert torch.equal(found, gradient(precision="bf16"))
    assert not torch.equal(found, gradient())


def test_the_loss_alone_is_rounded_too() -> None:
    with torch.no_grad():
        losses = [MetaLearner(smooth(), precision=name)([task()]).item() for name in (None, "bf16")]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)


def test_a_network_that_it_changes_too_much_is_refused() -> None:
    meta = MetaLearner(conv(), maml(0.5), steps=5, precision="bf16", generator=generator(0))
    with pytest.raises(ValueError, match=r"bfloat16 changes the meta-gradient of the first task by \d+%"):
        meta([images_task(16)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "float16"}, "leave the range of float16"),
        ({"precision": "fp8"}, "precision must be 'bf16' or None"),
        ({"precision": "bf16", "compile": True}, "needs compile=False"),
        ({"precision": "bf16", "dtype": torch.float64}, "networks with float32 parameters"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gradient(**options)


def test_autocast_to_float16_and_of_compiled_steps_is_refused() -> None:
    with torch.autocast("cpu", torch.float16), pytest.raises(ValueError, match="range of float16"):
        gradient()
    with (
        torch.autocast("cpu", torch.bfloat16),
        pytest.raises(ValueError, match=r"torch\.autocast needs compile=False"),
    ):
        gradient(compile=True)
