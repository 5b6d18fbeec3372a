"""Second derivatives for operations that torch differentiates only once.

The meta-gradient differentiates a gradient. The backward pass of a few torch kernels has no derivative:
attention, ``hardsigmoid``, ``embedding_bag``, and recurrent layers on cuDNN. Inside
:func:`twice_differentiable` these run as operations that have all derivatives. Others, such as ``cdist``,
raise an error that names the layer.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
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
    """Call the replacement of a function in ``REPLACED``, and record that one was used."""

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
    """Make forward passes inside twice differentiable; yield a function: was ``REPLACED`` used?

    Args:
        replace: whether the network uses operations of ``REPLACED``. Checking costs time at every operation.
    """
    mode = _Replace()
    with _SWITCHES.twice_differentiable():
        if replace:
            with mode:
                yield lambda: mode.used
        else:
            yield lambda: False


class _Switches:
    """Torch's choice of kernels, which holds for all threads of the process.

    Tasks run in several threads. The first thread that needs the switches sets them and the last one restores
    them. If each restored what it had found, they could stay set for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._restore = ExitStack()

    @contextmanager
    def twice_differentiable(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._set()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._restore.close()

    def _set(self) -> None:
        # In eval mode without gradients, torch's transformer layers use a fused kernel that skips padded
        # positions, which gives different values than with gradients.
        self._restore.callback(mha.set_fastpath_enabled, mha.get_fastpath_enabled())
        mha.set_fastpath_enabled(False)
        self._restore.enter_context(sdpa_kernel(SDPBackend.MATH))


_SWITCHES = _Switches()


def missing_derivative(error: BaseException) -> str | None:
    """Return the operation that torch cannot differentiate, such as ``_cdist``; None for other errors."""
    found = re.search(r"derivative for '?(?:aten::)?(\w+?)(?:_backward)?'? is not implemented", str(error))
    return found and found[1]


def is_node_of(node: torch.autograd.graph.Node, operation: str) -> bool:
    """Return whether a node of autograd, ``CdistBackward0``, belongs to an operation, ``_cdist``."""
    name = node.name().rstrip("0123456789").removesuffix("Backward")
    return name.lower() == operation.replace("_", "").lower()
