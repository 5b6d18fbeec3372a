"""Options of the engine: how a meta-gradient is computed."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from firststep.network import check_precision

ENGINES = ("stepwise", "unrolled")
ONLY_EXACT = "compiled steps compute in the dtype of the parameters"


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Speed and memory of the meta-gradient. All but the two dtypes give the same gradient.

    Examples:
        >>> gradient = functional.MetaGradient(model, rule, options=functional.EngineOptions(memory=0))
        >>> gradient(params, {}, [task]).loss.isfinite()
        tensor(True)
    """

    engine: str = "stepwise"
    """``stepwise``, whose memory does not grow with K, or ``unrolled``, one autograd graph over all steps."""
    compile: bool = False
    """Compile the step and its pull-back (stepwise only). The first call with a new shape then takes about a
    minute; later calls are faster."""
    memory: int | None = None
    """Memory budget in bytes for results that inner steps keep for the backward pass (stepwise only). Steps
    that do not fit are recomputed: the same numbers, more time. The budget does not depend on free memory, so
    that a run repeats bit for bit. Compiled conditioning below the last layers keeps up to 512 MiB more.
    Default: at most five steps within 384 MiB, so that the peak does not grow with K."""
    saved_dtype: torch.dtype | None = None
    """Dtype in which kept results are stored (compiled only), such as ``torch.bfloat16`` for half the memory.
    Steps and query loss stay exact, but bfloat16 changes the gradient by about one per cent. Conditioning
    losses and condition numbers are then computed from rounded images. Default: no rounding."""

    precision: str | None = None
    """``bf16`` runs the network forward and backward in bfloat16, for processors that are faster in it.
    Parameters, updates, Gram matrices and the outer gradient keep their dtype. Smooth networks
    lose little; networks with ReLU and pooling much. The first task is computed in both, and an error above
    25 % is refused. ``torch.autocast`` around a call does the same. Not with ``compile``."""

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise ValueError(f"unknown engine {self.engine!r}; there are {', '.join(ENGINES)}")
        if self.compile and self.engine == "unrolled":
            raise ValueError("compile works with engine='stepwise' only: the unrolled graph is too large")
        if self.memory is not None and self.memory < 0:
            raise ValueError(f"memory must be a number of bytes, 0 to save nothing, not {self.memory}")
        floating = isinstance(self.saved_dtype, torch.dtype) and self.saved_dtype.is_floating_point
        if self.saved_dtype is not None and not (self.compile and floating):
            raise ValueError(f"saved_dtype is a floating type, with compile=True, not {self.saved_dtype!r}")
        check_precision(self.precision)
        if self.precision is not None and self.compile:
            raise ValueError(f"precision={self.precision!r} needs compile=False: {ONLY_EXACT}")
