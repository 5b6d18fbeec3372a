"""C++ compiles while Python lowers the next graph: kernels are ready at the end, failures leave nothing."""

from __future__ import annotations

import threading

import pytest
import sympy
import torch
from torch._inductor import sizevars
from torch._inductor.async_compile import AsyncCompile
from torch.fx import Graph, GraphModule

from firststep.metagradient.compiler.inductor_patches import _linear_stride, overlap_cpp_compilation
from firststep.metagradient.compiler.torch_internals import compile_for

CPU = torch.device("cpu")
VALUES = torch.arange(6.0)


def multiple(factor: float) -> GraphModule:
    graph = Graph()
    graph.output([graph.call_function(torch.ops.aten.mul.Tensor, (graph.placeholder("values"), factor))])
    return GraphModule({}, graph)


def test_kernels_are_ready_at_the_end_or_after_waiting_for_them() -> None:
    wait = AsyncCompile.wait
    with overlap_cpp_compilation(CPU) as waiting:
        triple = compile_for(multiple(3.0), [VALUES], {}, "")
        (ready,) = waiting
        fivefold = compile_for(multiple(5.0), [VALUES], {}, "")
        ready()
        assert torch.equal(triple(VALUES)[0], 3 * VALUES)
    assert torch.equal(fivefold(VALUES)[0], 5 * VALUES)
    assert AsyncCompile.wait is wait


def test_a_kernel_that_fails_raises_inside_and_can_be_compiled_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_arguments: object) -> None:
        raise RuntimeError("no C++ compiler here")

    with monkeypatch.context() as patched:
        patched.setattr(AsyncCompile, "wait", broken)
        with pytest.raises(RuntimeError, match="no C"), overlap_cpp_compilation(CPU):
            compile_for(multiple(7.0), [VALUES], {}, "")
        assert AsyncCompile.wait is broken
    assert torch.equal(compile_for(multiple(7.0), [VALUES], {}, "")(VALUES)[0], 7 * VALUES)


def test_graphs_of_other_threads_wait_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[object] = []
    monkeypatch.setattr(AsyncCompile, "wait", lambda _self, scope: waited.append(scope))
    with overlap_cpp_compilation(CPU):
        thread = threading.Thread(target=AsyncCompile.wait, args=(None, {"their": 1}))
        thread.start()
        thread.join()
        AsyncCompile.wait(None, {"our": 1})  # type: ignore[arg-type]
        assert waited == [{"their": 1}]
    assert waited == [{"their": 1}, {"our": 1}]


X, Y = sympy.symbols("x0 x1", integer=True, nonnegative=True)
INDICES = [X, 64 * X + Y, 5 + 3 * X + 7056 * Y, sympy.Integer(4), X * Y, 2 * (X + 3 * Y), (X + 1) ** 2, X / 2]


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("var", [X, Y], ids=str)
def test_strides_are_those_of_the_compiler(index: sympy.Expr, var: sympy.Symbol) -> None:
    expected = sizevars.stride_at_vec_range(index, var, 8)
    found = _linear_stride(index, var)
    linear = index in INDICES[:4]
    assert (found is not None) or not linear
    assert found is None or (found == expected and isinstance(found, sympy.Integer))


def test_conditions_are_left_to_the_compiler() -> None:
    assert _linear_stride(X >= 3, X) is None
