"""Task sources: a function draws a task from a random generator, instead of classes of a dataset.

Each split has its own stream of tasks. ``tasks[i]`` depends on the source's name, the split, shots, queries,
the seed and i, and on nothing else.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from firststep.data.dataset import Dataset
from firststep.data.episodes import Episode
from firststep.errors import FirststepError
from firststep.utils.registry import Registry

SPLITS = ("train", "val", "test")
VERSION = 1
"""Part of the identity of every task's draws; raise it if the drawing changes."""

MakeTask = Callable[..., Any]
"""generator → (support_x, support_y, query_x, query_y); may also take ``shots``, ``queries``, ``split``."""

TASKS: Registry[MakeTask] = Registry("task source")
"""Task sources by name; :func:`register_tasks` adds one.

Examples:
    >>> from firststep.data import TASKS
    >>> list(TASKS)
    ['sinusoid']
"""


def register_tasks(make: MakeTask) -> MakeTask:
    """Register a function that draws a task, under its name: ``--tasks NAME``.

    Args:
        make: takes a ``numpy.random.Generator`` and, where it has such parameters, ``shots``, ``queries`` and
            ``split``. Returns a tuple (support_x, support_y, query_x, query_y) of arrays, or of tuples or
            dicts of them. Floats reach the network as float32.

    Examples:
        >>> from firststep.data import TASKS, open_tasks, register_tasks
        >>> @register_tasks
        ... def lines(generator, shots, queries):
        ...     slope = generator.uniform(-1, 1)
        ...     x = generator.uniform(-5, 5, size=(shots + queries, 1))
        ...     return x[:shots], slope * x[:shots], x[shots:], slope * x[shots:]
        >>> open_tasks("lines").tasks("train", shots=5, queries=3)[0].query_y.shape
        (3, 1)
        >>> TASKS.unregister("lines")
    """
    return TASKS.register(make.__name__, make)


class TaskSource(Dataset):
    """Tasks that a function draws. :func:`open_tasks` and ``from_arrays(targets=...)`` make one.

    Examples:
        >>> from firststep.data import open_tasks
        >>> tasks = open_tasks("sinusoid").tasks("test", shots=10, queries=20)
        >>> tasks[0].support_x.shape, bool((tasks[7].query_y == tasks[7].query_y).all())
        ((10, 1), True)
    """

    def __init__(self, name: str, make: MakeTask, splits: tuple[str, ...] = SPLITS) -> None:
        self._make = make
        self._accepts = set(inspect.signature(make).parameters)
        super().__init__(name, "", None, splits)
        self.fingerprint = self._fingerprint()

    def tasks(self, split: str, *, shots: int, queries: int, seed: int = 0) -> TaskSequence:
        """Return the endless sequence of tasks of a split."""
        if split not in self.splits:
            raise FirststepError(f"{self.name} has no split {split!r}; it has {', '.join(self.splits)}")
        for option, value in (("shots", shots), ("queries", queries)):
            if value < 1:
                raise FirststepError(f"{option} must be at least 1, not {value}")
        return TaskSequence(self, split, shots, queries, seed)

    def draw(self, generator: np.random.Generator, split: str, shots: int, queries: int) -> Episode:
        """Return one task; an error that names the source if the function does not give one."""
        options = {"shots": shots, "queries": queries, "split": split}
        try:
            made = self._make(generator, **{k: v for k, v in options.items() if k in self._accepts})
        except FirststepError:
            raise
        except Exception as error:
            raise FirststepError(f"tasks {self.name} failed: {type(error).__name__}: {error}") from error
        if not isinstance(made, tuple | list) or len(made) != 4:
            raise FirststepError(
                f"tasks {self.name} must give (support_x, support_y, query_x, query_y), "
                f"not {type(made).__name__}"
            )
        return Episode(*(_arrays(part, self.name) for part in made))

    def _fingerprint(self) -> str:
        """Return a hash of the first task of each split: it changes if the function draws other tasks."""
        digest = hashlib.sha256(json.dumps(["tasks", VERSION, self.name]).encode())
        for split in self.splits:
            for part in self.tasks(split, shots=2, queries=2)[0]:
                for array in _flat(part):
                    digest.update(f"{array.dtype}{array.shape}".encode())
                    digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]


class TaskSequence:
    """The tasks of a split by number."""

    def __init__(self, source: TaskSource, split: str, shots: int, queries: int, seed: int) -> None:
        self.source, self.split, self.shots, self.queries, self.seed = source, split, shots, queries, seed

    def __getitem__(self, index: int) -> Episode:
        if index < 0:
            raise IndexError(f"tasks are numbered from 0, not {index}")
        identity = ["task", VERSION, self.source.name, self.split, self.shots, self.queries, self.seed, index]
        key = hashlib.blake2b(json.dumps(identity).encode(), digest_size=16).digest()
        bits = np.random.Philox(key=np.frombuffer(key, dtype="<u8").astype(np.uint64))
        return self.source.draw(np.random.Generator(bits), self.split, self.shots, self.queries)


def open_tasks(name: str) -> TaskSource:
    """Open a task source: a registered name, or ``package.module:function``.

    Examples:
        >>> from firststep.data import open_tasks
        >>> open_tasks("sinusoid").name
        'sinusoid'
    """
    if ":" not in name:
        return TaskSource(name, TASKS[name])
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise FirststepError(
            f"tasks {name}: cannot import it ({error}); write package.module:function"
        ) from error
    if not callable(found):
        raise FirststepError(f"tasks {name} is a {type(found).__name__}, not a function that draws a task")
    return TaskSource(name, found)


def _flat(part: Any) -> list[np.ndarray]:
    if isinstance(part, tuple):
        return [array for each in part for array in _flat(each)]
    if isinstance(part, Mapping):
        return [array for name in sorted(part) for array in _flat(part[name])]
    return [part]


def _arrays(part: Any, name: str) -> Any:
    """Return a part of a task as arrays that torch takes: floats as float32, integers as int64."""
    if isinstance(part, tuple):
        return tuple(_arrays(each, name) for each in part)
    if isinstance(part, Mapping):
        return {key: _arrays(each, name) for key, each in part.items()}
    array = np.asarray(part)  # also of a tensor on the CPU
    if array.ndim and array.dtype.kind == "f":
        return np.ascontiguousarray(array, dtype=np.float32)
    if array.ndim and array.dtype.kind in "iub":
        return np.ascontiguousarray(array, dtype=np.int64)
    raise FirststepError(f"tasks {name} must give arrays of numbers, one row per sample, not {array.dtype}")
