"""A device without float64, like Apple's mps: the device under test refuses it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from firststep.conditioning import precision


class RefuseFloat64(TorchDispatchMode):
    """Fail at every float64 tensor of a device with more than ``largest`` entries."""

    def __init__(self, device: str, largest: int = -1) -> None:
        super().__init__()
        self.device, self.largest = device, largest

    def __torch_dispatch__(
        self, operation: Any, types: Any, arguments: Any = (), keywords: Any = None
    ) -> Any:
        options = keywords or {}
        if operation is torch.ops.aten._to_copy.default and _leaves_meta(arguments[0], options):
            dtype = options.get("dtype") or arguments[0].dtype
            return torch.rand(arguments[0].shape).to(dtype)
        results = operation(*arguments, **options)
        for tensor in tree_leaves(results):
            if isinstance(tensor, Tensor) and tensor.dtype == torch.float64:
                refused = tensor.device.type == self.device and tensor.numel() > self.largest
                assert not refused, f"{operation} gives float64 {list(tensor.shape)} on {self.device}"
        return results


def _leaves_meta(source: Tensor, options: dict[str, Any]) -> bool:
    """Return whether a tensor of ``meta``, which has no values, goes to the CPU, where it needs some."""
    target = options.get("device")
    return source.device.type == "meta" and target is not None and torch.device(target).type == "cpu"


@contextmanager
def without_float64(device: str) -> Iterator[None]:
    """Declare that a type of device has no float64, and refuse it there."""
    precision.WITHOUT_FLOAT64.add(device)
    try:
        with RefuseFloat64(device):
            yield
    finally:
        precision.WITHOUT_FLOAT64.discard(device)
