"""Flags of the command line, parsed by tyro from a function's signature; errors become one line.

tyro reports an error as a box of many lines. This module shortens it to one line: the flag, the given value,
the allowed values and the nearest match. It parses the text of the box, because tyro's structured errors are
private and may change in any release.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import io
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import tyro

from firststep.cli.boundary import is_rank0
from firststep.errors import FirststepError


class WrongArguments(FirststepError):
    """The arguments of a command cannot be parsed."""


def call(function: Callable[..., int | None], prog: str, arguments: Sequence[str]) -> int | None:
    """Call a function with its arguments from the command line, and return its exit status; None for 0."""
    return _parsed(
        prog,
        arguments,
        lambda: tyro.cli(
            _deferred(function),
            prog=prog,
            args=arguments,
            description=_description(function),
            console_outputs=is_rank0(),
        ),
    )()


def call_subcommand(
    functions: Mapping[str, Callable[..., None]], prog: str, arguments: Sequence[str]
) -> None:
    """Call the function that the first argument names with the remaining arguments."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in functions:
        raise WrongArguments(f"unknown subcommand {arguments[0]!r}; there are: {', '.join(functions)}")
    if not arguments:
        raise WrongArguments(f"name a subcommand: {', '.join(functions)}; {prog} --help explains them")
    deferred = {name: _deferred(function) for name, function in functions.items()}
    _parsed(
        prog,
        arguments,
        lambda: tyro.extras.subcommand_cli_from_dict(deferred, prog=prog, args=arguments),
    )()


def _description(function: Callable[..., int | None]) -> str:
    """Return the docstring before its arguments, wrapped at the width of the terminal.

    tyro joins lines unless they begin with a space.
    """
    paragraphs = inspect.cleandoc(function.__doc__ or "").partition("\nArgs:")[0].strip().split("\n\n")
    width = min(shutil.get_terminal_size().columns, 110)
    return "\n\n".join(
        part if "\n  " in part else textwrap.fill(" ".join(part.split()), width, subsequent_indent=" ")
        for part in paragraphs  # those with indented lines are lists
    )


def _deferred(function: Callable[..., int | None]) -> Callable[..., Callable[[], int | None]]:
    """Return a function that tyro can call; it only stores the call for later."""

    @functools.wraps(function)
    def keep(*values: Any, **named: Any) -> Callable[[], int | None]:
        return functools.partial(function, *values, **named)

    return keep


def _parsed(
    prog: str, arguments: Sequence[str], parse: Callable[[], Callable[[], int | None]]
) -> Callable[[], int | None]:
    text = io.StringIO()
    try:
        asks_for_help = any(argument in ("-h", "--help") for argument in arguments)
        with contextlib.redirect_stderr(text), nullcontext() if asks_for_help else _unbroken_lines():
            return parse()
    except SystemExit as end:
        if end.code in (0, None):  # help was shown
            return lambda: None
        # tyro colours its text if the terminal has colours, wherever the text goes.
        plain = re.sub(r"\x1b\[[0-9;]*m", "", text.getvalue())
        raise WrongArguments(f"{explain(plain, arguments)} ({prog} --help explains)") from None


@contextlib.contextmanager
def _unbroken_lines() -> Iterator[None]:
    """Stop tyro from wrapping lines at the width of the terminal."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "10000"
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def explain(box: str, arguments: Sequence[str]) -> str:
    """Return the first error in tyro's box as one line; the whole text if its kind is unknown."""
    lines = [re.sub(r"^[│|]|[│|]$", "", line.strip()).strip() for line in box.splitlines()]
    lines = [line for line in lines if line and not re.fullmatch(r"[─╭╮╰╯+-]+.*[─╭╮╰╯+-]+|[─-]+", line)]
    text = "\n".join(lines)
    near = re.search(r"Perhaps you meant:\n(--?[\w-]+)", text)
    if found := re.search(r"^Unrecognized (?:or misplaced )?options:\s+(.*)$", text, re.MULTILINE):
        first = found[1].split(", ")[0].split(" (applied to ")[0]
        if not first.startswith("-"):
            return f"{first!r} is not understood here"
        hint = f"; did you mean {near[1]}?" if near else ""
        # tyro searches all subcommands, and may suggest this very flag in another one.
        if near and near[1] == first and (other := re.search(r"^in .*?(\S+) --help$", text, re.MULTILINE)):
            hint = f"; the subcommand {other[1]} has it"
        return f"unknown flag {first}{hint}"
    if found := re.search(r"invalid choice '(.*)' for argument '(.*)'. Expected one of \((.*)\)", text):
        allowed = [name for name in re.findall(r"'([^']*)'", found[3]) if name != "None"]
        match = difflib.get_close_matches(found[1], allowed, n=1)
        hint = f"did you mean {match[0]}? " if match else ""
        return f"{found[2]} {found[1]}: {hint}choose from {', '.join(allowed)}"
    if found := re.search(r"Missing value for argument '(.*)'", text):
        return f"{found[1]} needs a value"
    if found := re.search(r"^Error parsing (\S+):", text, re.MULTILINE):
        flag = found[1]
        wanted = re.search(
            rf"^{re.escape(flag)} (\S.*)$", text.partition("Argument helptext:")[2], re.MULTILINE
        )
        kind = wanted[1].replace("{None}|", "") if wanted else "another value"
        return f"{flag} {_given(flag, arguments)}: expected {kind}"
    if found := re.search(r"^Missing from .*:\n(\S+)(?: .*)?\n(.*)$", text, re.MULTILINE):
        return f"{found[1]} is missing ({found[2].replace(' (required)', '').rstrip('.;')})"
    return " ".join(text.partition("For full helptext")[0].split())


def _given(flag: str, arguments: Sequence[str]) -> str:
    """Return the value that was typed for a flag."""
    for number, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name.replace("_", "-") == flag.replace("_", "-"):
            return value if equals else " ".join(arguments[number + 1 : number + 2])
    return "as given"
