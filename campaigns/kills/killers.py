"""Three ways to kill a process: at a random moment, before a file operation, in the middle of a write."""

from __future__ import annotations

import atexit
import importlib
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, Literal

Mode = Literal["moment", "operation", "torn write"]
MODES: tuple[Mode, ...] = ("moment", "operation", "operation", "torn write")

CHANGES = frozenset(
    f"os.{name}"
    for name in ("rename", "remove", "mkdir", "rmdir", "link", "symlink", "truncate", "chmod", "utime")
)
"""Audit events of what changes a folder; ``open`` is looked at more closely."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class _Counter:
    """Counts file operations below a folder, and does something before the n-th."""

    def __init__(self, root: str, n: int, then: Callable[[], None]) -> None:
        self.root, self.n, self.then, self.count = root, n, then, 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            self.operation(arguments[0])

    def operation(self, path: object) -> None:
        try:
            where = os.path.abspath(os.fsdecode(path))  # type: ignore[arg-type]
        except TypeError:
            return  # a file descriptor, whose opening was counted
        if where.startswith(self.root):
            self.count += 1
            if self.count == self.n:
                self.then()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _watch(counter: _Counter) -> None:
    """Count Python's own operations by the audit hook, others by wrapping their functions."""
    sys.addaudithook(counter)
    tensors: Any = importlib.import_module("safetensors.torch")

    sync, serialize = os.fsync, tensors.serialize_file

    def fsync(file: Any) -> None:
        counter.operation(counter.root)
        sync(file)

    def serialize_file(data: Any, path: Any, *rest: Any, **more: Any) -> None:
        counter.operation(path)
        serialize(data, path, *rest, **more)

    os.fsync = fsync  # type: ignore[assignment]
    tensors.serialize_file = serialize_file


def kill_before_operation(root: str, n: int) -> Callable[[], None]:
    """Return a hook for a child: SIGKILL just before its n-th operation on files below ``root``."""
    return lambda: _watch(_Counter(root, n, _die))


def count_operations(root: str, report: int) -> Callable[[], None]:
    """Return a hook for a child: write its number of operations into the descriptor ``report``."""

    def start() -> None:
        counter = _Counter(root, -1, lambda: None)
        _watch(counter)
        atexit.register(lambda: os.write(report, str(counter.count).encode()))

    return start


def kill_in_write(size: int) -> Callable[[], None]:
    """Return a hook for a child: the kernel kills it when a file gets longer than ``size`` bytes.

    SIGXFSZ, which Python ignores unless told otherwise, runs no code of the process, as SIGKILL.
    """

    def start() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return start
