"""Pointwise pooling equals torch's pooling, its backward pass and its second derivative."""

from __future__ import annotations

import importlib

import hypothesis
import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F

from firststep import Conditioning
from firststep.functional import FunctionalModule
from firststep.losses import cross_entropy
from firststep.metagradient.compiler import pooling, rows
from networks import small_conv, small_task


def images(height: int, width: int, channels_last: bool, seed: int, few: bool) -> Tensor:
    source = torch.Generator().manual_seed(seed)
    values = torch.randn(3, 4, height, width, generator=source, dtype=torch.float64)
    if few:
        values = values.round()  # many equal entries
    return values.contiguous(memory_format=torch.channels_last) if channels_last else values


@hypothesis.given(st.integers(2, 7), st.integers(2, 7), st.booleans(), st.integers(0, 99), st.booleans())
def test_operators_equal_torch(height: int, width: int, channels_last: bool, seed: int, few: bool) -> None:
    x = images(height, width, channels_last, seed, few)
    pooled, indices = F.max_pool2d(x, 2, return_indices=True)
    mine, argmax = torch.ops.firststep.max_pool_2x2(x, channels_last)
    assert torch.equal(mine, pooled)
    values = torch.randn_like(pooled)
    expected = torch.ops.aten.max_pool2d_with_indices_backward(
        values, x, [2, 2], [2, 2], [0, 0], [1, 1], False, indices
    )
    back = torch.ops.firststep.unpool_2x2(values, argmax, height, width, channels_last)
    assert torch.equal(back, expected)
    assert back.is_contiguous(memory_format=torch.channels_last) or not channels_last
    other = images(height, width, channels_last, seed + 1, few)
    gathered = other.flatten(2).gather(2, indices.flatten(2)).view_as(pooled)
    assert torch.equal(torch.ops.firststep.gather_2x2(other, argmax, channels_last), gathered)


def second_derivative(x: Tensor, v: Tensor) -> Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        (first,) = torch.autograd.grad(F.max_pool2d(x, 2).sin().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((first * v).sum(), x)
    return second


@pytest.mark.parametrize("channels_last", [False, True])
def test_traced_derivatives_are_replaced(channels_last: bool) -> None:
    x, v = images(6, 5, channels_last, 1, False), images(6, 5, channels_last, 2, False)
    graph = make_fx(second_derivative)(x, v)
    pooling.fuse_pooling(graph.graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    names = {str(node.target) for node in graph.graph.nodes}
    assert not {name for name in names if "aten.max_pool" in name or "aten.gather" in name}
    torch.testing.assert_close(graph(x, v), second_derivative(x, v))


def test_pooling_is_not_replaced_if_its_indices_have_another_use() -> None:
    def argmax(x: Tensor) -> Tensor:
        return F.max_pool2d(x, 2, return_indices=True)[1] + 1

    x = images(4, 4, False, 1, False)
    graph = make_fx(argmax)(x)
    pooling.fuse_pooling(graph.graph)
    graph.recompile()
    assert torch.equal(graph(x), argmax(x))


def test_pooling_in_jacobian_rows_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The part that adds zeros to unpooled values is included."""
    graphs = []
    monkeypatch.setattr(rows, "compile_graph", lambda graph, _: graphs.append(graph) or graph)
    model, task = FunctionalModule(small_conv()), small_task()
    rows.CompiledRows(
        model,
        Conditioning(subset="all"),
        cross_entropy,
        model.params(),
        task.support_x,
        task.support_y,
        len(task.support_y),
    )
    names = {str(node.target) for graph in graphs for node in graph.graph.nodes}
    assert any("gather_2x2" in name for name in names)
    assert not {
        name for name in names if "aten.max_pool" in name
    }  # a pooling is replaced entirely or not at all


def test_the_module_can_be_reloaded() -> None:
    """Notebooks do that after an edit, but a process can define an operator only once."""
    importlib.reload(pooling)
    x = torch.arange(16.0).view(1, 1, 4, 4)
    pooled, argmax = torch.ops.firststep.max_pool_2x2(x, False)
    assert pooled.flatten().tolist() == [5, 7, 13, 15]
    assert torch.equal(torch.ops.firststep.gather_2x2(x, argmax, False), pooled)
