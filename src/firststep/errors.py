"""The one exception a user is meant to read: its message is a single line that says what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FirststepError(Exception):
    """Bad input: a missing file, an unknown option, data that does not fit the request.

    The command line prints the message as one line and exits with status 2; library callers may
    catch it. Mistakes in calling a function (wrong shapes, NaN arguments) are ``ValueError``.

    Examples:
        >>> from firststep.data import open_dataset
        >>> try:
        ...     open_dataset("glyfs")
        ... except fs.FirststepError as error:
        ...     print(error)
        unknown dataset 'glyfs'; did you mean glyphs?
    """


def reason(error: BaseException, longest: int = 300) -> str:
    """The type and the first line of somebody else's error; torch adds its stack to some."""
    try:
        text = str(error)
    except Exception:  # its own, in saying what it is
        text = ""
    return ": ".join([type(error).__name__, *text.splitlines()[:1]])[:longest]


def unknown(kind: str, name: str, choices: Iterable[str]) -> FirststepError:
    """The error for a name that is not among the choices: the nearest one, or all."""
    known = list(choices)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    return FirststepError(f"unknown {kind} {name!r}; {hint}")
