"""Counting what a graph saves neither changes the graph nor keeps it alive."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from firststep import jacobian_gram
from firststep.conditioning.saved_memory import counting_saved


def test_nothing_of_a_gram_matrix_outlives_its_gradient() -> None:
    """ReLU, tanh and exp save their own results: a graph that held those would hold itself."""
    made: list[StorageWeakRef] = []

    def residuals(params: dict[str, Tensor]) -> Tensor:
        hidden = [torch.relu(params["weight"] @ torch.ones(5))]
        hidden += [torch.tanh(hidden[-1]), torch.exp(hidden[-1])]
        made.extend(StorageWeakRef(value.untyped_storage()) for value in hidden)
        return hidden[1] + hidden[2]

    weight = torch.rand(4, 5, requires_grad=True)
    jacobian_gram(residuals, {"weight": weight}).sum().backward()
    assert len(made) == 6  # once for G, once for its gradient
    assert all(one.expired() for one in made)


def test_counts_each_storage_once_and_leaves_second_derivatives_as_they_are() -> None:
    x = torch.rand(10, dtype=torch.float64, requires_grad=True)
    with counting_saved() as saved:
        y = torch.tanh(x)  # saves its result
        z = (y * y[:]).sum()  # twice the same storage
    assert saved.bytes == 10 * 8
    (first,) = torch.autograd.grad(z, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    t = torch.tanh(x.detach())
    torch.testing.assert_close(second, 2 * (1 - t**2) * (1 - 3 * t**2))
