"""Turn exceptions and signals of a command into one line and an exit status.

The library raises typed errors. Any other exception is a bug of ours, and the line says so; a user has no use
for a traceback. Nothing slow is imported here, so that Ctrl-C works while torch is still being imported.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from firststep.errors import FirststepError, reason
from firststep.utils.user_modules import user_modules

BAD_INPUT = 2
INTERRUPTED = 128 + signal.SIGINT
SILENCE = 10.0
"""Seconds that a silent process waits after a failure: rank 0 must print before torchrun ends all."""
LONGEST = 1000
"""Largest number of characters in a message, which may quote any input."""
NAMES = "firststep-names"
"""Error handler for text that the terminal's encoding cannot represent."""


def is_rank0() -> bool:
    """Return whether this is the only process, or the process of torchrun that prints."""
    return os.environ.get("RANK", "0") == "0"


def within_boundary(command: Callable[[], int], *, debug: bool = False, own_process: bool = True) -> int:
    """Run a command and return its exit status: 0 done, 2 bad input or failure, 130 interrupted.

    Args:
        command: function that returns a status or raises.
        debug: whether to let errors pass with their traceback.
        own_process: whether to set signal handlers and streams of this process.
    """
    if own_process:
        _prepare_streams()
        _on_interrupt(_leave_at_once)
    status = _status(command, debug)
    if own_process:  # all work is done: Ctrl-C while Python cleans up ends it at once
        _on_interrupt(lambda number, frame: os._exit(status))
    if status == BAD_INPUT and not is_rank0():
        # torchrun ends all processes as soon as one fails, even before rank 0 has printed the reason.
        time.sleep(SILENCE)
    return status


def _status(command: Callable[[], int], debug: bool) -> int:
    try:
        status = command()
        sys.stdout.flush()  # now, so that a full disk is still reported in one line
        return status
    except KeyboardInterrupt as interrupt:
        say(str(interrupt) or "interrupted; the same command starts again")
        return INTERRUPTED
    except BrokenPipeError:  # the reader, such as `head`, has left: not an error
        _discard_output()
        return 0
    except BaseException as error:  # a user's module may raise anything
        if debug:
            raise
        say(_output_failure() or describe(error))
        return BAD_INPUT


def interrupts_as_usual() -> None:
    """Restore the default handler: from here on Ctrl-C is an exception, so that work can be saved."""
    _on_interrupt(signal.default_int_handler)


def say(message: str) -> None:
    """Print one line on standard error, from one process."""
    if is_rank0() and sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # standard error is closed
            print(f"firststep: {_one_line(message)}", file=sys.stderr, flush=True)


def describe(error: BaseException) -> str:
    """Return one line that says what went wrong and what to do."""
    if isinstance(error, FirststepError):
        return as_flags(str(error))
    if isinstance(error, MemoryError) or "can't allocate memory" in reason(error):
        return "there is not enough memory for this; fewer or smaller images, filters or tasks need less"
    if isinstance(error, OSError) and error.strerror:
        # Errors of result files have a file name; an error without one is about a stream.
        named = isinstance(error.filename, str | bytes)
        return f"{os.fsdecode(error.filename) if named else 'cannot write the output'}: {error.strerror}"
    what = reason(error)
    if own := user_modules():
        return f"{what}; one of your modules ({', '.join(own)}) may be the cause: --debug shows where"
    return f"internal error ({what}); please report it, with what --debug shows"


def as_flags(message: str) -> str:
    """Replace the library's options, written as Python in backticks, by flags of the command."""

    def flag(found: re.Match[str]) -> str:
        name, value = found[1].replace("_", "-"), found[2]
        if value == "False":
            return f"--no-{name}"
        return f"--{name}" if value in (None, "True") else f"--{name} {value}"

    return re.sub(r"`([a-z][a-z_]*)(?:=([^`\s]*))?`", flag, message)


def _one_line(text: str) -> str:
    """Remove characters that break the line or move the cursor: file names may contain anything."""
    line = " ".join(text.split())
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
    return "".join(c if c.isprintable() or "\udc80" <= c <= "\udcff" else f"\\x{ord(c):02x}" for c in line)


def _prepare_streams() -> None:
    """Make sure that standard streams exist and accept any file or class name, whatever the locale."""
    codecs.register_error(NAMES, _name_bytes)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (until the end)
        elif hasattr(stream, "reconfigure"):
            with contextlib.suppress(OSError):  # redirected to a full disk
                stream.reconfigure(errors=NAMES)
    if not sys.warnoptions:
        warnings.showwarning = _show_warning


def _name_bytes(error: UnicodeError) -> tuple[str | bytes, int]:
    """Write undecodable bytes of a name as they were read, and other characters by their numbers."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    if all("\udc80" <= character <= "\udcff" for character in found):
        return found.encode("ascii", "surrogateescape"), error.end
    return codecs.backslashreplace_errors(error)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning as one line, without its place in the code."""
    if not issubclass(category, DeprecationWarning | PendingDeprecationWarning | FutureWarning):
        say(f"warning: {message}")


def _on_interrupt(handler: Callable[[int, FrameType | None], Any]) -> None:
    """Set the handler unless Ctrl-C is ignored on purpose, as in a background job."""
    if threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    ):
        signal.signal(signal.SIGINT, handler)


def _leave_at_once(number: int, frame: FrameType | None) -> None:
    """Exit during the import of libraries: an exception there would print pages of text."""
    say("interrupted; the same command starts again")
    os._exit(INTERRUPTED)


def _discard_output() -> None:
    """Discard unwritten output, which Python would otherwise try to write again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _output_failure() -> str | None:
    """Return why standard output cannot be written, or None."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        _discard_output()
        return f"cannot write the output: {getattr(error, 'strerror', None) or error}"
    return None
