"""Errors for the browser: one line, without paths of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus

from firststep.errors import FirststepError, reason

LONGEST = 500

# A slash, a backslash or a drive letter, up to a character that ends a path in a sentence.
_PATH = re.compile(r"(?<![\w.<])(?:[A-Za-z]:)?(?:[\\/]{1,2}[^\\/\s'\":;,()]+)+[\\/]?")


class Refused(Exception):
    """A request that is answered with an HTTP status and one line."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = HTTPStatus(status)


def one_line(error: BaseException, hidden: Iterable[str] = ()) -> str:
    """Describe an error in one line; an error not meant for users is reduced to its class.

    Args:
        error: the exception.
        hidden: paths that the message may contain; only their last part is shown.
    """
    if isinstance(error, MemoryError) or "can't allocate memory" in reason(error):
        return "there is not enough memory for this; fewer or smaller pictures need less"
    if not isinstance(error, FirststepError | Refused):
        kind = type(error).__name__
        return f"internal error ({kind}); the terminal that runs firststep page says more"
    return without_paths(str(error), hidden)


def without_paths(text: str, hidden: Iterable[str] = ()) -> str:
    """Replace every path by its last part, in one line of bounded length."""
    line = " ".join(text.split())
    for path in sorted(hidden, key=len, reverse=True):
        if len(path) > 1:
            line = line.replace(path, _last(path))
    line = _PATH.sub(lambda found: _last(found[0]), line)
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"


def _last(path: str) -> str:
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]
