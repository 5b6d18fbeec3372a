"""Limits of a child process, and calls of the library as a child's function."""

from __future__ import annotations

import resource
import sys
import traceback
from collections.abc import Callable

MEMORY = 6 << 30
"""Bytes of address space beyond what the parent has: a bomb must not take the machine down."""


def limited(before: Callable[[], None] | None) -> Callable[[], None]:
    def set_limits() -> None:
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if before is not None:
            before()

    return set_limits


def python_call(call: Callable[[], object] | None, expected: str) -> Callable[[], int]:
    """Return a function with status 0 for a finite result, or 2 and a line for an expected error."""

    def run() -> int:
        from firststep import FirststepError

        assert call is not None
        try:
            result = call()
        except (ValueError, TypeError, IndexError, FirststepError) as error:
            return _refused(error)
        except RuntimeError as error:
            if not _is_of_a_layer(error):
                raise
            return _refused(error)
        print(describe(result))
        return 0

    return run


def _refused(error: Exception) -> int:
    print(f"firststep: {type(error).__name__}: {' '.join(str(error).split())[:500]}", file=sys.stderr)
    return 2


def _is_of_a_layer(error: Exception) -> bool:
    """Return whether a layer of the user's network raised it: what a network cannot take is for it to say."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    inner = [file for file in files if not file.endswith("/second_derivatives.py")]  # wraps calls of torch
    return bool(inner) and "/torch/nn/" in inner[-1]


def describe(value: object) -> str:
    """Return a result in words, with ``nan`` or ``inf`` wherever it has one."""
    import numpy as np
    import torch

    if isinstance(value, torch.Tensor):
        whole = value.detach()
        if not (whole.is_floating_point() or whole.is_complex()) or bool(torch.isfinite(whole).all()):
            return f"tensor {tuple(whole.shape)}"
        return f"tensor {tuple(whole.shape)} with nan" if bool(whole.isnan().any()) else "tensor with inf"
    if isinstance(value, np.ndarray):
        return describe(torch.from_numpy(np.ascontiguousarray(value)))
    if isinstance(value, dict):
        return "; ".join(describe(item) for item in value.values())
    if isinstance(value, list | tuple):
        return "; ".join(map(describe, value))
    return repr(value)[:200] if isinstance(value, int | float | str) else type(value).__name__
