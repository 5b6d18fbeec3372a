"""A C++ exception in a compiled kernel, which has released the GIL, becomes a Python exception."""

from __future__ import annotations

import subprocess
import sys

import pytest

from missing_compiler import needs_compiler

PROGRAM = """
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from firststep.metagradient.compiler.trace import compile_graph

def chosen(values, places):
    return values[places] * 2

values, within, beyond = torch.arange(4.0), torch.tensor([0, 3]), torch.tensor([0, 9])
compiled = compile_graph(make_fx(chosen)(values, within), [values, within])
result = compiled(values, within)
result = result if isinstance(result, torch.Tensor) else result[0]
print(result.tolist())
try:
    compiled(values, beyond)
except Exception as error:
    print("raised", "out of bounds" in str(error))
"""


@needs_compiler
@pytest.mark.slow
def test_an_index_out_of_bounds_is_an_exception() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[0.0, 6.0]", "raised True"]
