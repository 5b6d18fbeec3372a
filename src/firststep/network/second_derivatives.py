"""Second derivatives for operations that torch differentiates only once.

The meta-gradient differentiates a gradient. The backward pass of a few of torch's kernels has no derivative:
attention, ``hardsigmoid``, ``embedding_bag``, and recurrent layers on cuDNN. Inside
:func:`twice_differentiable` the same mathematics runs as operations that have all derivatives. For what is
left, such as ``cdist``, there is an error that names the layer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.backends import cudnn, mha
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from firststep.network.embedding_bag import embedding_bag


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return F.relu6(input + 3) / 6


def _without_cudnn(recurrent: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any, **keywords: Any) -> Any:
        with cudnn.flags(enabled=False):
            return recurrent(*arguments, **keywords)

    return run


REPLACED: dict[Callable[..., Any], Callable[..., Any]] = {
    F.hardsigmoid: hardsigmoid,
    F.embedding_bag: embedding_bag,
    **{name: _without_cudnn(name) for name in (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)},
}


class _Replace(TorchFunctionMode):
    """Calls what ``REPLACED`` has for a function, and notes that there was such a call."""

    def __init__(self) -> None:
        super().__init__()
        self.used = False

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        arguments: tuple[Any, ...] = (),
        keywords: dict[str, Any] | None = None,
    ) -> Any:
        replacement = REPLACED.get(function)
        self.used = self.used or replacement is not None
        return (replacement or function)(*arguments, **(keywords or {}))


@contextmanager
def twice_differentiable(replace: bool = True) -> Iterator[Callable[[], bool]]:
    """Forward passes inside can be differentiated twice; the value tells whether ``REPLACED`` was used.

    Args:
        replace: whether the network has operations of ``REPLACED``; looking for them takes time at every
            operation.
    """
    mode = _Replace()
    fast_path = mha.get_fastpath_enabled()
    # In eval mode and without gradients torch.nn's own transformer layers would run a kernel of their own,
    # and leave padded positions out: other numbers than with gradients.
    mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            if replace:
                with mode:
                    yield lambda: mode.used
            else:
                yield lambda: False
    finally:
        mha.set_fastpath_enabled(fast_path)


def missing_derivative(error: BaseException) -> str | None:
    """The operation that torch says it cannot differentiate, such as ``_cdist``; None for another error."""
    found = re.search(r"derivative for '?(?:aten::)?(\w+?)(?:_backward)?'? is not implemented", str(error))
    return found and found[1]


def is_node_of(node: torch.autograd.graph.Node, operation: str) -> bool:
    """Whether a node of autograd's graph, ``CdistBackward0``, is that of an operation, ``_cdist``."""
    name = node.name().rstrip("0123456789").removesuffix("Backward")
    return name.lower() == operation.replace("_", "").lower()
