"""The one exception a user is meant to read: its message is a single line that says what to do."""

from __future__ import annotations


class FirststepError(Exception):
    """Bad input: a missing file, an unknown option, data that does not fit the request.

    The command line prints the message as one line and exits with status 2; library callers may
    catch it. Mistakes in calling a function (wrong shapes, NaN arguments) are ``ValueError``.
    """
