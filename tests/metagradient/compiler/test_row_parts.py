"""The parts of a row's graph compute the sum over rows, and only linear operations run once for all rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.nn import functional as F

from firststep.metagradient.compiler.linear_tail import dependents, linear_tail
from firststep.metagradient.compiler.row_parts import row_parts
from firststep.metagradient.compiler.trace import Function, compile_graph, trace_graph
from networks import generator

Gradient = Callable[[Tensor, Tensor, Tensor], Tensor]
ROWS = 4

# (weight [3, 3], unit [3, 3], fixed [3, 3]) ↦ a term of the sum over rows (unit, fixed)
LINEAR: dict[str, Gradient] = {
    "product": lambda weight, unit, fixed: weight @ (unit * fixed),
    "two products": lambda weight, unit, fixed: weight @ (weight @ (unit * fixed) + unit.exp()) + fixed,
    "mask": lambda weight, unit, fixed: torch.where(weight > 0, weight @ (unit * fixed), 0.0),
    "quotient": lambda weight, unit, fixed: (weight @ (unit * fixed) / weight.exp()).sum(0, keepdim=True),
    "convolution": lambda weight, unit, fixed: F.conv2d((unit * fixed)[None, None], weight[None, None]),
}
NOT_LINEAR: dict[str, Gradient] = {
    "exponential": lambda weight, unit, fixed: (weight @ (unit * fixed)).exp(),
    "square": lambda weight, unit, fixed: (weight @ unit) * (weight @ fixed),
    "a constant": lambda weight, unit, fixed: weight @ (unit * fixed) + 1.0,
    "the same for all rows": lambda weight, unit, fixed: weight @ (unit * fixed) + weight,
    "mask with ones": lambda weight, unit, fixed: torch.where(weight > 0, weight @ (unit * fixed), 1.0),
    "mask of a row": lambda weight, unit, fixed: torch.where(unit > 0, weight @ fixed, 0.0),
    "denominator": lambda weight, unit, fixed: weight / (1.0 + (weight @ (unit * fixed)).square()),
    "kernel of a row": lambda weight, unit, fixed: F.conv2d((weight @ unit)[None, None], fixed[None, None]),
}


def noise(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def check(gradient: Gradient, compile: Callable[[GraphModule, list[Tensor]], Function]) -> None:
    """Compare the sum over rows by the parts with a plain loop."""
    weight, units, fixed = noise(3, 3, seed=0), noise(ROWS, 3, 3, seed=1), noise(ROWS, 3, 3, seed=2)

    def both(weight: Tensor, unit: Tensor, fixed: Tensor) -> tuple[Tensor, Tensor]:
        return (weight.sin() @ unit).tanh(), gradient(weight.cos(), unit, fixed)

    graph, _ = trace_graph(both, (weight, units[0], fixed[0]))
    parts = row_parts(graph, support=1, rows=1)
    given = [weight, *compile(parts.shared, [weight])(weight)]
    totals = [torch.zeros(like.shape, dtype=like.dtype) for like in parts.totals]
    one = compile(parts.row, [*given, units[0]])
    saved = one(*given, units[0])[1:]
    pull_back = compile(parts.pull_back, [*given, units[0], fixed[0], *totals, *saved])
    expected = torch.zeros(())
    for unit, vector in zip(units, fixed, strict=True):
        row, *saved = one(*given, unit)
        expected_row, added = both(weight, unit, vector)
        torch.testing.assert_close(row, expected_row, rtol=1e-12, atol=1e-12)
        pull_back(*given, unit, vector, *totals, *saved)
        expected = expected + added
    (result,) = compile(parts.finish, [*given, *totals])(*given, *totals)
    torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("gradient", [*LINEAR.values(), *NOT_LINEAR.values()], ids=[*LINEAR, *NOT_LINEAR])
def test_the_parts_compute_the_sum_over_rows(gradient: Gradient) -> None:
    check(gradient, lambda graph, _: graph)


def test_compiled_rows_add_in_place() -> None:
    check(LINEAR["two products"], compile_graph)


@pytest.mark.parametrize("name", [*LINEAR, *NOT_LINEAR])
def test_only_linear_operations_run_once_for_all_rows(name: str) -> None:
    gradient = {**LINEAR, **NOT_LINEAR}[name]
    square = noise(3, 3, seed=0)
    graph, _ = trace_graph(gradient, (square, square.clone(), square.clone()))
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    tail = linear_tail(graph.graph, dependents(graph.graph, inputs[1:]), list(output.args[0]))
    assert bool(tail) == (name in LINEAR)
