"""Define firststep's own operators and put them into graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

# An operator can be defined once per process, so a reloaded module keeps the library it had.
_library = globals().get("_library") or torch.library.Library("firststep", "FRAGMENT")


def define_operator(
    function: Callable[..., Any], signature: str, shape: Callable[..., Tensor] | None = None
) -> Any:
    """Define ``torch.ops.firststep.<name of function>`` and return its overload, the target of graph nodes.

    Args:
        function: what the operator computes.
        signature: arguments and result in torch's schema language, "(Tensor images) -> Tensor".
        shape: returns an empty tensor like the result. With it the operator is opaque: the compiler calls
            ``function``, on CPUs only. Without it the compiler sees and fuses the operations of ``function``.
    """
    name = function.__name__
    if not hasattr(torch.ops.firststep, name):
        _library.define(name + signature)
        if shape is None:
            _library.impl(name, function, "CompositeImplicitAutograd")
        else:
            _library.impl(name, function, "CPU")
            _library.impl(name, shape, "Meta")
    return getattr(torch.ops.firststep, name).default


def replace_node(node: Node, target: Any, arguments: tuple[Any, ...]) -> None:
    """Replace ``node`` by a call of ``target`` that has a result of the same shape."""
    with node.graph.inserting_before(node):
        new = node.graph.call_function(target, arguments)
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)
