"""The exception for users: its message is one line that says what is wrong and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FirststepError(Exception):
    """Bad input: a missing file, an unknown name, data that does not fit the request.

    The command line prints the message as one line and exits with status 2. Library callers may catch it.
    Wrong arguments of a function (shapes, NaN) raise ``ValueError`` instead. A name that is not in a registry
    raises an error that is both.

    Examples:
        >>> from firststep.data import open_dataset
        >>> try:
        ...     open_dataset("glyfs")
        ... except fs.FirststepError as error:
        ...     print(error)
        unknown dataset 'glyfs'; did you mean glyphs?
    """


def reason(error: BaseException, longest: int = 300) -> str:
    """Return the type and the first line of another library's error; some of torch's include a stack."""
    try:
        text = str(error)
    except Exception:  # its __str__ may fail
        text = ""
    return ": ".join([type(error).__name__, *text.splitlines()[:1]])[:longest]


def unknown(kind: str, name: str, choices: Iterable[str]) -> FirststepError:
    """Return the error for a name that is not a choice; it suggests the nearest choice, or lists all."""
    known = list(choices)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    return FirststepError(f"unknown {kind} {name!r}; {hint}")
