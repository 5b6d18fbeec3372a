"""The device ``standin``: an accelerator in Python that computes on the CPU.

Torch treats its tensors as those of another device. A CPU tensor among them is an error, every value that
Python reads is a recorded synchronisation. Its numbers are the CPU's, so code is right on it if it gives the
results of the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

aten = torch.ops.aten
READS = (aten._local_scalar_dense.default, aten.nonzero.default, aten.equal.default)
"""Operations whose result Python reads, or whose shape depends on values."""


class _Module:
    """The functions that torch requires of a device's module; the generator is the CPU's."""

    def __init__(self) -> None:
        self._generator = torch.Generator()

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        self._generator.manual_seed(seed)

    manual_seed = manual_seed_all

    def get_rng_state(self, device: Any = None) -> Tensor:
        return self._generator.get_state()

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        self._generator.set_state(state)


_setup_privateuseone_for_python_backend("standin", backend_module=_Module())
SECOND = torch.device("standin", 0)
_synchronisations: list[str] = []
_broken: set[Any] = set()


@contextmanager
def synchronisations() -> Iterator[list[str]]:
    """Collect the operations that make Python wait for the device."""
    _synchronisations.clear()
    yield _synchronisations


@contextmanager
def broken(operation: Any) -> Iterator[None]:
    """Make an operation of the device return results that are 5 % too large."""
    _broken.add(operation)
    try:
        yield
    finally:
        _broken.clear()


class OnSecond(Tensor):
    """A tensor of the device; ``held`` is the tensor on the CPU that has its values."""

    held: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: Tensor) -> OnSecond:
        tensor = torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=SECOND,
        )
        tensor.held = held
        return tensor

    def __repr__(self, **_: Any) -> str:
        return f"OnSecond({self.held!r})"

    def tolist(self) -> Any:
        _synchronisations.append("tolist")
        return self.held.tolist()

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        return _run(operation, *arguments, **(keywords or {}))


def _to_device(value: Any) -> Any:
    if isinstance(value, Tensor) and value._is_zerotensor():  # autograd's zeros without memory
        value = torch.zeros(value.shape, dtype=value.dtype)
    return OnSecond(value) if isinstance(value, Tensor) else value


def _to_cpu(value: Any) -> Any:
    if isinstance(value, OnSecond):
        return value.held
    if isinstance(value, Tensor) and value.dim() > 0:
        raise RuntimeError(f"a CPU tensor of shape {tuple(value.shape)} among tensors of the device")
    return torch.device("cpu") if isinstance(value, torch.device) else value


def _run(operation: Any, *arguments: Any, **keywords: Any) -> Any:
    """Run an operation of the device on the CPU tensors that have its values."""
    if operation is aten._to_copy.default and not _stays(*arguments, **keywords):
        return _move(*arguments, **keywords)
    if operation is aten.copy_.default:
        return _copy(*arguments)
    if operation is aten._copy_from.default:
        return _copy(arguments[1], arguments[0])
    if operation in READS:
        _synchronisations.append(operation.name())
    inputs, named = tree_map(_to_cpu, (arguments, keywords))
    results = operation(*inputs, **named)
    if operation in _broken:
        results = tree_map(lambda value: value * 1.05 if isinstance(value, Tensor) else value, results)
    # An operation in place returns its argument.
    known = {id(leaf.held): leaf for leaf in tree_leaves((arguments, keywords)) if isinstance(leaf, OnSecond)}
    return tree_map(lambda result: known[id(result)] if id(result) in known else _to_device(result), results)


def _stays(source: Tensor, device: torch.device | None = None, **_: Any) -> bool:
    return device is None or device.type == source.device.type


def _move(source: Tensor, device: torch.device, **options: Any) -> Tensor:
    """Compute ``source.to(device)`` from the device to the CPU, or the reverse."""
    if isinstance(source, OnSecond):
        _synchronisations.append("copy to the CPU")
        return aten._to_copy.default(source.held, **options)
    return OnSecond(aten._to_copy.default(source, **options))


def _copy(target: Tensor, source: Tensor, *_: Any) -> Tensor:
    if isinstance(target, OnSecond):
        target.held.copy_(source.held if isinstance(source, OnSecond) else source)
    else:
        _synchronisations.append("copy to the CPU")
        target.copy_(source.held)
    return target


# Factories have no tensor among their arguments; a move from the CPU has none of the device.
_library = torch.library.Library("_", "IMPL")
_library.fallback(_run, "PrivateUse1")
