"""Our C++ routines, compiled by the compiler of the graphs and cached on disk.

Each routine is compiled per dtype and instruction set. In a graph it is an opaque operator with a known
result shape.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from firststep.metagradient.compiler.kept_code import kept_kernel
from firststep.metagradient.compiler.torch_internals import load_cpp

_SCALARS = {torch.float32: "float", torch.float64: "double"}
_FOLDER = Path(__file__).parent


def has_routines(images: Tensor) -> bool:
    """Return whether there are routines for the dtype and device of ``images`` and this processor."""
    return (
        sys.platform != "win32"  # written for GCC and Clang, where `long` has 64 bits
        and images.device.type == "cpu"
        and images.dtype in _SCALARS
        and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    )


def load_routine(parts: list[str], dtype: torch.dtype, pointers: int, numbers: int) -> Callable[..., None]:
    """Load the function ``kernel`` of a C++ source.

    Args:
        parts: files to concatenate, without ``.cpp``.
        dtype: of all arrays.
        pointers: number of input arrays. One output array follows them.
        numbers: number of integer arguments after the arrays.
    """
    scalar = _SCALARS[dtype]
    arguments = [*[f"const {scalar}*"] * pointers, f"{scalar}*", *["long"] * numbers]
    texts = [(_FOLDER / f"{part}.cpp").read_text("utf-8") for part in parts]
    source = "\n".join([f"using scalar = {scalar};", *texts])
    return kept_kernel((arguments, source), partial(load_cpp, arguments, source))
