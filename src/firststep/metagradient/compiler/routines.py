"""Routines in C++ of our own: compiled by the compiler that compiles the graphs, then found on disk.

Of each there is a version for every type of number and kind of processor. To a graph a routine is an operator
of which only the result's shape is known.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from firststep.metagradient.compiler.torch_internals import load_cpp

_SCALARS = {torch.float32: "float", torch.float64: "double"}
_FOLDER = Path(__file__).parent


def has_routines(images: Tensor) -> bool:
    """Whether they are for this type of number, device and processor."""
    return (
        images.device.type == "cpu"
        and images.dtype in _SCALARS
        and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    )


def load_routine(parts: list[str], dtype: torch.dtype, pointers: int, numbers: int) -> Callable[..., None]:
    """The function ``kernel`` of these files, one after the other.

    It takes so many arrays to read, one to write, and so many whole numbers.
    """
    scalar = _SCALARS[dtype]
    arguments = [*[f"const {scalar}*"] * pointers, f"{scalar}*", *["long"] * numbers]
    texts = [(_FOLDER / f"{part}.cpp").read_text("utf-8") for part in parts]
    return load_cpp(arguments, "\n".join([f"using scalar = {scalar};", *texts]))
