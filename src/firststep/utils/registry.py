"""Registries by name, which users can add to: methods, backbones, datasets, losses, metrics, experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from firststep.errors import FirststepError, unknown

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """A mapping from names to entries of one kind, in order of registration.

    Reading an unknown name raises :class:`UnknownName`, which suggests the nearest name. Registering a name
    twice is an error, so that nobody replaces a published method by accident.
    """

    def __init__(self, kind: str, **entries: T) -> None:
        """Make a registry; ``kind`` is what messages call an entry, such as ``"method"``."""
        self.kind = kind
        self._entries: dict[str, T] = dict(entries)

    def register(self, name: str, entry: T) -> T:
        """Add an entry and return it."""
        if not name or name != name.strip():
            raise ValueError(f"{name!r} is not a name for a {self.kind}")
        if name in self._entries:
            raise ValueError(f"there is already a {self.kind} called {name!r}")
        self._entries[name] = entry
        return entry

    def unregister(self, name: str) -> None:
        """Remove an entry, such as one that a test has added."""
        del self._entries[name]

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            raise UnknownName(str(unknown(self.kind, name, self._entries)))
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<registry of {self.kind}s: {', '.join(self._entries)}>"


class UnknownName(FirststepError, KeyError, ValueError):
    """A name is not in a registry; the message suggests the nearest one."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError.__str__ would return the repr
