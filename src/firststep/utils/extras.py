"""Optional packages: the error for a missing one names the extra to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firststep.errors import FirststepError


class MissingExtra(FirststepError, ImportError):
    """A package is not installed; the message names the extra that brings it."""


@contextmanager
def extra(name: str, needed_by: str) -> Iterator[None]:
    """Turn a failed import inside the block into an error that names the extra to install.

    Args:
        name: name of the extra, as in ``pip install 'firststep[name]'``.
        needed_by: what needs it, for the message, such as ``"firststep.data"``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "firststep"):  # our own module is missing: a bug, not a missing extra
            raise
        raise MissingExtra(f"{needed_by} needs {package}: pip install 'firststep[{name}]'") from error
