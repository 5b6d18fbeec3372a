"""Arguments for calls of the library: right most of the time, or wrong in one of many ways."""

from __future__ import annotations

from random import Random
from typing import Any

import torch

NOT_TENSORS: tuple[Any, ...] = (None, 3, "x", [], [1.0, 2.0], {}, object, 2.5, True)
VALUES = (0.0, 1.0, -1.0, 1e-320, 1e-30, 1e30, 1e300, float("nan"), float("inf"), -float("inf"))
NUMBERS: tuple[Any, ...] = (
    *(0, 1, 2, -1, 0.5, 1e-9, 1e9, 1e308, float("nan"), float("inf")),
    *(None, "x", True, 10**30, [1]),
)
TYPES = (torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int8, torch.bool, torch.complex64)


def pick(rng: Random, *values: Any) -> Any:
    """Return one of the values, which may be of any type."""
    return rng.choice(values)


def tensor(rng: Random, *shape: int, whole: float = 0.6) -> Any:
    """Return a tensor of the shape, or sometimes of another shape, type or value, or no tensor."""
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    made = torch.randn(shape, generator=generator)
    if rng.random() < whole:
        return made
    kind = pick(rng, "shape", "shape", "dtype", "value", "value", "values", "none", "big", "small", "grad")
    if kind == "none":
        return pick(rng, *NOT_TENSORS)
    if kind == "shape":
        return torch.randn(_other_shape(rng, list(shape)), generator=generator)
    if kind == "dtype":
        return made.to(pick(rng, *TYPES))
    if kind == "value":
        made = made.double()
        made.view(-1)[rng.randrange(made.numel())] = pick(rng, *VALUES)
    elif kind == "values":
        made = torch.full(shape, pick(rng, *VALUES), dtype=torch.float64)
        made = made.to(pick(rng, torch.float32, torch.float64))
    elif kind == "big":
        made = made.double() * pick(rng, 1e20, 1e150, 1e300)
    elif kind == "small":
        made = made.double() * pick(rng, 1e-20, 1e-150, 1e-310)
    else:
        made.requires_grad_()
    return made


def _other_shape(rng: Random, sizes: list[int]) -> list[int]:
    action = rng.randrange(4)
    if action == 0:
        sizes[rng.randrange(len(sizes))] = pick(rng, 0, 1, 2, 7)
    elif action == 1:
        sizes.pop(rng.randrange(len(sizes)))
    elif action == 2:
        sizes.insert(rng.randrange(len(sizes) + 1), pick(rng, 1, 2, 0))
    else:
        return [0]
    return sizes


def labels(rng: Random, samples: int, classes: int, whole: float = 0.7) -> Any:
    """Return one label per sample, or what somebody might pass instead."""
    if rng.random() < whole:
        return torch.tensor([i % classes for i in range(samples)])
    return pick(
        rng,
        torch.full((samples,), classes),
        torch.full((samples,), -1),
        torch.full((samples,), -100),  # what torch's cross-entropy leaves out
        torch.full((samples,), 2**40),
        torch.zeros(samples),
        torch.zeros((samples, 1), dtype=torch.long),
        *(torch.zeros(samples, dtype=dtype) for dtype in (torch.bool, torch.int8, torch.uint8, torch.int32)),
        *(torch.zeros(length, dtype=torch.long) for length in (samples + 1, 0)),
        torch.tensor(0),
        None,
        [0] * samples,
        "x",
    )


def show(*values: Any) -> str:
    """Return the values, short enough for a line."""

    def one(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        return repr(value)[:40]

    return ", ".join(map(one, values))
