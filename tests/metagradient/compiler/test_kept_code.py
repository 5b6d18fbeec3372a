"""Compiled code that is found again without tracing computes the same, and is refused when in doubt."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.config
from torch import Tensor

from firststep.metagradient.compiler.kept_code import find
from firststep.metagradient.compiler.trace import Function, compile_graph, flatten, trace_graph

ARGUMENTS = (torch.rand(3, 4), torch.rand(4, 2))


def product(x: Tensor, y: Tensor) -> dict[str, Tensor]:
    return {"product": (x @ y).exp() - 1, "sum": x.sum()}


@pytest.fixture(scope="module")
def compiled() -> Function:
    """The compiled product, whose Python module inductor executes at the first call of a process."""
    torch.compiler.reset()
    graph, _ = trace_graph(product, ARGUMENTS)
    return compile_graph(graph, flatten(ARGUMENTS))


def like(compiled: Function, factor: float, wrapper: dict[str, Any]) -> Function:
    """A compiled function that gives other numbers, or has another module."""

    def other(*inputs: Tensor) -> list[Tensor]:
        return [factor * result for result in compiled(*inputs)]

    other.wrapper = wrapper
    return other


def test_kept_code_computes_the_same_and_is_refused_when_it_does_not_fit(
    compiled: Function, tmp_path: Path
) -> None:
    here = str(tmp_path)
    missing = find(product, ARGUMENTS, here)
    assert not missing.functions
    missing.keep([compiled], [flatten(ARGUMENTS)], saved_bytes=7)
    found = find(lambda x, y: product(x, y), ARGUMENTS, here)  # other code that does the same
    (function,) = found.functions
    assert found.saved_bytes == 7
    other = torch.rand(3, 4), torch.rand(4, 2)
    torch.testing.assert_close(list(function(*other)), flatten(product(*other)))

    # Another function, another setting, other shapes, other or no caches.
    assert not find(lambda x, y: product(x, y) | {"sum": x.sum() * 2}, ARGUMENTS, here).functions
    assert not find(product, ARGUMENTS, here, "setting").functions
    assert not find(product, (torch.rand(5, 4), ARGUMENTS[1]), here).functions
    with torch._inductor.config.patch({"cpp.simdlen": 1}):
        assert not find(product, ARGUMENTS, here).functions
    with torch._inductor.config.patch(force_disable_caches=True):
        assert find(product, ARGUMENTS, here).path is None

    # A damaged file, and a kernel that is gone.
    assert found.path is not None
    text = found.path.read_text()
    found.path.write_text(text[:100])
    assert not find(product, ARGUMENTS, here).functions
    stored = json.loads(text)
    for code in stored["functions"]:
        code["kernels"] = {name: ["gone.so", "kernel_0"] for name in code["kernels"]}
    found.path.write_text(json.dumps(stored))
    assert not find(product, ARGUMENTS, here).functions


def test_code_that_gives_other_numbers_or_has_unknown_parts_is_not_kept(
    compiled: Function, tmp_path: Path
) -> None:
    module = tmp_path / "wrapper.py"
    module.write_text("def call(args):\n    return helper(*args)\n")
    unknown = {"__file__": str(module), "helper": compiled}
    for refused in (like(compiled, 2, compiled.wrapper), like(compiled, 1, unknown), product):
        kept = find(product, ARGUMENTS, str(tmp_path))
        kept.keep([refused], [flatten(ARGUMENTS)])
        assert not find(product, ARGUMENTS, str(tmp_path)).functions
    kept.keep([like(compiled, 1, compiled.wrapper)], [flatten(ARGUMENTS)])
    assert find(product, ARGUMENTS, str(tmp_path)).functions


PROCESS = """
import sys, torch
from firststep import maml
from firststep.functional import EngineOptions, FunctionalModule, MetaGradient
from networks import shallow_conv, shallow_task
model = FunctionalModule(shallow_conv())
gradient = MetaGradient(model, maml(0.2), steps=2, options=EngineOptions(compile=True))
result = gradient(model.params(), {}, [shallow_task()])
print([value.double().sum().item().hex() for value in result.params.values()])
print("torch._inductor.codecache" in sys.modules)
"""


@pytest.mark.slow
def test_a_second_process_starts_without_the_compiler_and_gives_the_same_bits() -> None:
    """The first run may find the code of other tests; the second must find all of it."""
    path = [str(Path(__file__).parents[2] / "helpers"), *sys.path]
    runs = [
        subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:0] = {path}\n{PROCESS}"],
            check=True, capture_output=True, text=True,
        ).stdout.splitlines()
        for _ in range(2)
    ]  # fmt: skip
    assert runs[0][0] == runs[1][0]
    assert runs[1][1] == "False"
