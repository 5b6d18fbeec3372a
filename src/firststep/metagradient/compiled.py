"""Compile pure functions that take derivatives inside, once per shape.

``torch.compile`` does not see through ``torch.autograd.grad(create_graph=True)``. So a function is run once
on real inputs while every tensor operation, those of the backward passes included, is recorded; the record is
a flat graph without autograd, and that is what is compiled. The compiler keeps its results on disk, so that a
later process with the same shapes starts warm.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

Function = Callable[..., Any]


class Compiler:
    """Wraps functions of tensors (in dicts and tuples) so that they compile at their first call.

    If compiling fails, one warning says why, and from then on all functions of this compiler run as they are.
    """

    def __init__(self) -> None:
        self._works = True

    def __call__(self, function: Function) -> Function:
        compiled: dict[Any, Function] = {}

        def call(*arguments: Any) -> Any:
            if not self._works:
                return function(*arguments)
            key = _shapes(arguments)
            if key not in compiled:
                try:
                    compiled[key] = _compile(function, arguments)
                except Exception as error:
                    self._give_up(error)
                    return function(*arguments)
            with torch.no_grad():
                return compiled[key](*arguments)

        return call

    def _give_up(self, error: Exception) -> None:
        self._works = False
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        warnings.warn(f"compiling failed, going on without ({reason})", RuntimeWarning, stacklevel=5)


def _shapes(arguments: tuple[Any, ...]) -> Any:
    leaves, structure = tree_flatten(arguments)
    return str(structure), tuple((leaf.shape, leaf.stride(), leaf.dtype, leaf.device) for leaf in leaves)


def _compile(function: Function, arguments: tuple[Any, ...]) -> Function:
    from torch.fx.experimental.proxy_tensor import make_fx  # slow to import, seldom needed

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # deprecations inside the compiler are not the user's to mend
        graph = make_fx(lambda *inputs: function(*inputs))(*arguments)
        compiled: Function = torch.compile(graph, dynamic=False)
        compiled(*arguments)  # compiles now, where a failure can still be mended
    return compiled
