"""Kernels that share a C++ file compute the same as alone, and are found in the cache."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._inductor import async_compile
from torch._inductor.codecache import CppPythonBindingsCodeCache
from torch.fx import Graph, GraphModule

from firststep.metagradient.compiler import inductor_patches
from firststep.metagradient.compiler.kernel_files import FILE_LENGTH, Kernel, by_file, is_known, one_file
from firststep.metagradient.compiler.torch_internals import compile_for

VALUES = torch.arange(12.0).reshape(3, 4)
TEMPLATE = CppPythonBindingsCodeCache.suffix_template
aten = torch.ops.aten


def several() -> GraphModule:
    """Return a graph of three kernels: the products between them are not fused."""
    graph = Graph()
    values = graph.placeholder("values")
    one = graph.call_function(aten.mul.Tensor, (values, 3.0))
    two = graph.call_function(aten.mm.default, (one, graph.call_function(aten.t.default, (one,))))
    three = graph.call_function(aten.add.Tensor, (two, 1.0))
    four = graph.call_function(aten.mm.default, (three, three))
    graph.output([graph.call_function(aten.sub.Tensor, (four, 2.0)), three])
    return GraphModule({}, graph)


def expected() -> list[torch.Tensor]:
    three = (3 * VALUES) @ (3 * VALUES).T + 1
    return [three @ three - 2, three]


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a new cache, which contains only this test's C++."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    return tmp_path


def kernels_in(folder: Path) -> list[list[str]]:
    """Return the kernels per file, without the file of the precompiled header."""
    files = [
        re.findall(r"#define kernel (kernel_\d+)", path.read_text()) for path in folder.rglob("*.main.cpp")
    ]
    return sorted(names for names in files if names)


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_share_files_and_compute_the_same(
    sources: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(async_compile, "get_compile_threads", lambda: threads)
    found = compile_for(several(), [VALUES], {}, f"{threads} threads")(VALUES)
    torch.testing.assert_close(list(found), expected())
    assert kernels_in(sources) == [["kernel_0"], ["kernel_0", "kernel_1"]]


def test_an_unknown_template_means_one_file_per_kernel(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inductor_patches, "is_known", lambda template: False)
    torch.testing.assert_close(list(compile_for(several(), [VALUES], {}, "alone")(VALUES)), expected())
    assert kernels_in(sources) == []


def test_the_template_of_this_torch_is_known_and_another_is_not() -> None:
    assert is_known(TEMPLATE)
    assert not is_known(TEMPLATE.replace("METH_VARARGS", "METH_FASTCALL"))


def test_kernels_have_their_own_namespace_and_headers_come_first() -> None:
    source = '#include <{}>\nstatic int helper() {{ return 1; }}\nextern "C" void kernel(const float* a) {{}}'
    kernels = [Kernel(("const float*",), source.format(name)) for name in ("one.h", "two.h", "one.h")]
    text = one_file(kernels, TEMPLATE, "kernel({}); Py_RETURN_NONE;")
    assert text.startswith("#include <one.h>\n#include <two.h>\n")
    assert text.index("Python.h") < text.index("namespace in_kernel_0")
    assert text.count("kernel(parse_arg<float*>(args, 0)); Py_RETURN_NONE;") == 3
    assert re.findall(r'\{"(\w+)", ([\w:]+), METH_VARARGS', text) == [
        (f"kernel_{number}", f"in_kernel_{number}::kernel_py") for number in range(3)
    ]


@given(st.lists(st.integers(1, 3 * FILE_LENGTH), max_size=40))
def test_files_have_all_kernels_once_and_are_about_equal(lengths: list[int]) -> None:
    kernels = [Kernel((), "x" * length) for length in lengths]
    files = by_file(kernels)
    assert sorted(number for file in files for number in file) == list(range(len(kernels)))
    assert all(files)
    if len(kernels) > 1:
        assert len(files) >= 2
    totals = [sum(lengths[number] for number in file) for file in files]
    # The longest file was the shortest before it got its last kernel.
    assert not files or max(totals) - max(lengths) <= min(totals)
