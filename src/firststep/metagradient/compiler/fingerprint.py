"""A digest of what a function does with tensors: many times cheaper than tracing it.

The function runs once on fake tensors, as it does for tracing, and every operation is written down with its
arguments. So whatever Python code leads to the operations (closures, attributes, hooks) is in the digest by
what it does. Equal digests mean equal graphs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from firststep.metagradient.compiler.torch_internals import (
    OpOverload,
    TorchDispatchMode,
    TreeSpec,
    on_fake_tensors,
    tree_flatten,
    tree_unflatten,
)

_PLAIN = (
    type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format
)  # fmt: skip


class Fingerprint(NamedTuple):
    digest: str | None
    """None if the digest would leave something out, such as the values of a buffer."""
    structure: TreeSpec
    """Structure of the function's result."""


def fingerprint(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Fingerprint:
    """Return the digest of ``function`` at ``arguments``, whose values do not matter."""
    leaves, nested = tree_flatten(arguments)
    recorder = _Recorder()

    def recorded(*inputs: Any) -> TreeSpec:
        recorder.add("inputs", str(nested), results=inputs)
        with recorder:
            result = function(*tree_unflatten(list(inputs), nested))
        outputs, structure = tree_flatten(result)
        recorder.add("outputs", str(structure), *outputs)
        return structure

    structure = on_fake_tensors(recorded, leaves)
    return Fingerprint(recorder.digest.hexdigest() if recorder.complete else None, structure)


class _Recorder(TorchDispatchMode):
    """Writes down the operations inside the context."""

    def __init__(self) -> None:
        super().__init__()
        self.digest = hashlib.sha256()
        self.complete = True
        self._numbers: dict[int, int] = {}
        self._alive: list[Tensor] = []  # no identity may be used twice

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = operator(*args, **(kwargs or {}))
        self.complete &= isinstance(operator, OpOverload)
        self.add(str(operator), args, kwargs or {}, results=result)
        return result

    def add(self, *values: Any, results: Any = ()) -> None:
        words: list[str] = []
        self._describe(values, words, new=False)
        self._describe(results, words, new=True)
        self.digest.update(f"{words}\n".encode())

    def _describe(self, value: Any, words: list[str], new: bool) -> None:
        if isinstance(value, Tensor):
            number = self._numbers.setdefault(id(value), len(self._numbers))
            if number == len(self._alive):
                self._alive.append(value)
                self.complete &= new  # an unknown tensor is a buffer or a constant
            words.append(f"%{number}")
            if new:
                words.append(f"{tuple(value.shape)}{value.stride()}{value.dtype}{value.device}")
        elif isinstance(value, list | tuple):
            words.append("[")
            for part in value:
                self._describe(part, words, new)
            words.append("]")
        elif isinstance(value, dict):
            self._describe(list(value.items()), words, new)
        else:
            words.append(repr(value))
            self.complete &= isinstance(value, _PLAIN)
