"""Optional packages: a missing one is one line that names the extra to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firststep.errors import FirststepError


class MissingExtra(FirststepError, ImportError):
    """A package is not installed; the message names the extra that brings it."""


@contextmanager
def extra(name: str, needed_by: str) -> Iterator[None]:
    """Imports within: a third-party package that is missing is reported with the extra that brings it.

    Args:
        name: the extra, as in ``pip install 'firststep[name]'``.
        needed_by: what needs it, for the message, such as ``"firststep.data"``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "firststep"):  # a mistake of ours, not a missing package
            raise
        raise MissingExtra(f"{needed_by} needs {package}: pip install 'firststep[{name}]'") from error
