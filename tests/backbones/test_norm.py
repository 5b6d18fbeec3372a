"""Batch norm's derivatives, written by hand, against the plain formula's and finite differences."""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from firststep.backbones import BatchStatisticsNorm
from firststep.backbones.norm import BatchNorm
from networks import generator

EPS = 1e-3
Function = Callable[[Tensor, Tensor, Tensor], Tensor]


def by_hand(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    normalised: Tensor = BatchNorm.apply(images, weight, bias, EPS)[0]
    return normalised


def plain(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    mean = images.mean((0, 2, 3), keepdim=True)
    variance = ((images - mean) ** 2).mean((0, 2, 3), keepdim=True)
    normalised = (images - mean) / torch.sqrt(variance + EPS)
    return normalised * weight[:, None, None] + bias[:, None, None]


def inputs(shape: tuple[int, int, int, int], seed: int) -> tuple[Tensor, Tensor, Tensor]:
    source = generator(seed)

    def noise(*size: int) -> Tensor:
        return torch.randn(size, generator=source, dtype=torch.float64).requires_grad_()

    return noise(*shape), noise(shape[1]), noise(shape[1])


def derivatives(function: Function, arguments: tuple[Tensor, ...], orders: int, seed: int) -> list[Tensor]:
    """Return the gradients of each order, against fixed random vectors."""
    source = generator(seed)
    value = torch.sin(function(*arguments)).sum()
    found: list[Tensor] = [value]
    for _ in range(orders):
        grads = torch.autograd.grad(value, arguments, create_graph=True, materialize_grads=True)
        found.extend(grads)
        against = [torch.randn(g.shape, generator=source, dtype=g.dtype) for g in grads]
        value = torch.stack([(g * v).sum() for g, v in zip(grads, against, strict=True)]).sum()
    return found


shapes = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.integers(2, 5))


@given(shape=shapes, seed=st.integers(0, 99))
def test_three_orders_are_those_of_the_plain_formula(shape: tuple[int, int, int, int], seed: int) -> None:
    arguments = inputs(shape, seed)
    got, expected = (derivatives(function, arguments, 3, seed) for function in (by_hand, plain))
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


def test_two_orders_are_finite_differences() -> None:
    arguments = inputs((3, 2, 3, 2), seed=0)
    assert gradcheck(by_hand, arguments)
    assert gradgradcheck(by_hand, arguments)


def test_the_last_order_may_be_taken_without_a_graph() -> None:
    """The engine differentiates like this; it uses the known means instead of recomputing them."""
    arguments = inputs((4, 3, 2, 5), seed=1)
    results = []
    for function in (by_hand, plain):
        (first, *_) = torch.autograd.grad(function(*arguments).sin().sum(), arguments, create_graph=True)
        results.append(torch.autograd.grad(first.cos().sum(), arguments, materialize_grads=True))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_rows_at_once_are_rows_one_by_one() -> None:
    arguments = inputs((3, 2, 4, 3), seed=2)
    normalised = by_hand(*arguments)
    cotangents = torch.randn(6, *normalised.shape, generator=generator(3), dtype=torch.float64)

    def pull(cotangent: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(normalised, arguments, cotangent, retain_graph=True, create_graph=True)

    together = torch.func.vmap(pull)(cotangents)
    single = [torch.stack(parts) for parts in zip(*map(pull, cotangents), strict=True)]
    again = []
    for rows in (together, single):
        product = torch.stack([torch.sin(row).sum() for row in rows]).sum()
        again.append(torch.autograd.grad(product, arguments, retain_graph=True, materialize_grads=True))
    for one, other in zip([*together, *again[0]], [*single, *again[1]], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_a_backward_pass_keeps_no_more_than_the_pictures() -> None:
    """One tensor of the images' size for the way back, and numbers per channel."""
    saved: list[int] = []
    norm = BatchStatisticsNorm(4)
    images = torch.randn(5, 4, 8, 8, generator=generator(4), requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.numel()) or t, lambda t: t):
        norm(images)
    assert sorted(saved)[-2:] == [4, images.numel()]
