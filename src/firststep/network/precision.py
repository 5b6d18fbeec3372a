"""bfloat16 for the network's passes, while parameters, updates, losses and Gram matrices keep their dtype.

The network runs in ``torch.autocast``, and so does its part of every backward pass. Its features and outputs
come back in the dtype of the parameters. A surrounding ``torch.autocast`` means the same: it is switched off
for everything else, which would otherwise be rounded too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

import torch
from torch import Tensor

PRECISIONS = ("bf16",)

_dtype: ContextVar[torch.dtype | None] = ContextVar("firststep_network_dtype", default=None)


def check_precision(precision: str | None) -> torch.dtype | None:
    """Return the dtype that a precision names, None for that of the parameters; refuse others."""
    if precision in ("fp16", "float16", "half"):
        raise ValueError(f"precision={precision!r}: {_NO_FLOAT16}")
    if precision is not None and precision not in PRECISIONS:
        raise ValueError(f"precision must be 'bf16' or None, not {precision!r}")
    return None if precision is None else torch.bfloat16


_NO_FLOAT16 = (
    "gradients of gradients leave the range of float16, whose smallest number is 6e-8: use bfloat16, which "
    "has the range of float32"
)


@contextmanager
def networks_in(dtype: torch.dtype | None, param: Tensor) -> Iterator[None]:
    """Run networks in ``dtype``; None takes that of a surrounding ``torch.autocast``, if there is one.

    Args:
        dtype: bfloat16 or None.
        param: one of the network's parameters.
    """
    kind = param.device.type
    available = torch.amp.is_autocast_available(kind)
    ambient = torch.get_autocast_dtype(kind) if available and torch.is_autocast_enabled(kind) else None
    if ambient not in (None, torch.bfloat16):
        raise ValueError(f"torch.autocast({kind!r}) is for {ambient}: {_NO_FLOAT16}")
    chosen = dtype or ambient
    if chosen is not None and param.dtype != torch.float32:
        raise ValueError(f"bfloat16 is for networks with float32 parameters, not {param.dtype}")
    if chosen is not None and not available:
        raise ValueError(f"precision='bf16' needs torch.autocast, which {kind} does not have")
    token = _dtype.set(chosen)
    try:
        with nullcontext() if ambient is None else torch.autocast(kind, enabled=False):
            yield
    finally:
        _dtype.reset(token)


def network_dtype() -> torch.dtype | None:
    """Return the dtype that networks run in now; None for that of their parameters."""
    return _dtype.get()


def casting(device: torch.device) -> AbstractContextManager[object]:
    """Run a network's operations in the current dtype."""
    dtype = _dtype.get()
    # Without a cache: a cast parameter would keep the graph of another evaluation.
    return nullcontext() if dtype is None else torch.autocast(device.type, dtype, cache_enabled=False)
