"""Errors as the browser may see them: one line, and no path of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus

from firststep.errors import FirststepError, reason

LONGEST = 500

# A slash or backslash, or a drive's letter, and what follows until something that ends a path in a sentence.
_PATH = re.compile(r"(?<![\w.<])(?:[A-Za-z]:)?(?:[\\/]{1,2}[^\\/\s'\":;,()]+)+[\\/]?")


class Refused(Exception):
    """A request that is answered with an HTTP status and a line."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = HTTPStatus(status)


def one_line(error: BaseException, hidden: Iterable[str] = ()) -> str:
    """What went wrong, for the browser; an error that is not for users gives no more than its kind.

    Args:
        error: whatever was raised.
        hidden: paths that it may name, which are shown by their last part.
    """
    if isinstance(error, MemoryError) or "can't allocate memory" in reason(error):
        return "there is not enough memory for this; fewer or smaller pictures need less"
    if not isinstance(error, FirststepError | Refused):
        kind = type(error).__name__
        return f"internal error ({kind}); the terminal that runs firststep page says more"
    return without_paths(str(error), hidden)


def without_paths(text: str, hidden: Iterable[str] = ()) -> str:
    """Paths by their last part alone, in one line of bounded length."""
    line = " ".join(text.split())
    for path in sorted(hidden, key=len, reverse=True):
        if len(path) > 1:
            line = line.replace(path, _last(path))
    line = _PATH.sub(lambda found: _last(found[0]), line)
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"


def _last(path: str) -> str:
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]
