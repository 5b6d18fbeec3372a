"""Run commands in forked children of a process that has imported everything, without seconds of start.

A child is what ``python -m firststep`` would be. It has its own session, environment, working folder and
streams, and signals as a shell sets them. It ends as an interpreter does: threads joined, ``atexit``
functions called, standard output flushed, with status 120 if that fails. The parent has one thread, because
a fork copies only the thread that forks.

As a program it serves the tests, whose processes have threads: one line of JSON in per command, one line out.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import logging
import multiprocessing.util
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from campaigns.processes import adopt_orphans, descendants, end_all

Function = Callable[[], int]
Stream = Literal["kept", "full", "closed pipe", "closed"]


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """State that a child does not share with its parent."""

    cwd: Path
    environment: Mapping[str, str]
    stdin: bytes = b""
    stdout: Stream = "kept"
    stderr: Stream = "kept"
    encoding: str = "utf-8"
    errors: str = "strict"
    before: Callable[[], None] | None = None
    """called in the child last of all before the function: limits, hooks"""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    status: int
    """as a shell has it, or minus the number of the signal that ended it"""
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool = False
    left_behind: list[str] = field(default_factory=list)
    """command lines of processes that did not end after it"""


def command(arguments: Sequence[str]) -> Function:
    """Return the function of a child that is ``firststep ARGUMENTS``."""

    def run() -> int:
        from firststep.cli import main

        sys.argv = ["firststep", *arguments]
        return main()

    return run


def program(words: Sequence[str]) -> Function:
    """Return the function of a child that becomes another program."""

    def run() -> int:
        os.execv(words[0], list(words))

    return run


class Child:
    """A function in a forked process."""

    def __init__(self, function: Function, surroundings: Surroundings) -> None:
        if len(os.listdir("/proc/self/task")) != 1:
            raise RuntimeError("a process with threads must not fork: their locks would stay taken")
        self._out, self._err = _kept("stdout"), _kept("stderr")
        sys.stdout.flush()
        sys.stderr.flush()
        self.start = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            _live(function, surroundings, self._out, self._err)
        self._ended = os.pidfd_open(self.pid)
        self._status: int | None = None

    def ends_within(self, seconds: float) -> bool:
        """Wait at most so long for its end."""
        if self._status is not None:
            return True
        poll = select.poll()
        poll.register(self._ended, select.POLLIN)
        if not poll.poll(max(0.0, seconds) * 1000):
            return False
        self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return True

    def kill(self) -> None:
        """Kill this process alone, as a user or the kernel would."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, seconds: float, grace: float = 5.0) -> Outcome:
        """Wait for the outcome; after ``seconds`` kill the child and all that it started."""
        timed_out = not self.ends_within(seconds)
        if timed_out:
            for pid in [self.pid, *descendants(self.pid)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.ends_within(60)
        duration = time.monotonic() - self.start
        left = end_all(grace)
        os.close(self._ended)
        assert self._status is not None
        return Outcome(
            status=self._status,
            stdout=content(self._out),
            stderr=content(self._err),
            seconds=duration,
            timed_out=timed_out,
            left_behind=[] if timed_out else left,
        )


def run(function: Function, surroundings: Surroundings, seconds: float, grace: float = 5.0) -> Outcome:
    return Child(function, surroundings).wait(seconds, grace)


def _kept(name: str) -> int:
    """Make a file in memory: a pipe would fill up, and a file on disk could clash with the case."""
    return os.memfd_create(name)


def content(stream: int) -> str:
    with open(stream, "rb") as file:
        file.seek(0)
        return file.read().decode("utf-8", "replace")


def _live(function: Function, surroundings: Surroundings, out: int, err: int) -> None:
    """Run the child from its start to its exit; never return."""
    status = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)  # as Python starts
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _connect(surroundings, out, err)
        os.environ.clear()
        os.environ.update(surroundings.environment)
        os.chdir(surroundings.cwd)
        # Libraries' functions for the end were registered in the parent; one of torch's touches all memory,
        # which a fork must copy. These are all that a command can need; its own are added to them.
        atexit._clear()
        atexit.register(logging.shutdown)
        atexit.register(multiprocessing.util._exit_function)  # type: ignore[attr-defined]
        # multiprocessing imports __main__ again in its workers: it must be what a user has started.
        sys.modules["__main__"] = importlib.import_module("firststep.__main__")
        if surroundings.before is not None:
            surroundings.before()
        status = function()
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else 0 if exit_.code is None else 1
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        try:
            status = _finalise(status)
        finally:
            os._exit(status & 0xFF)


def _connect(surroundings: Surroundings, out: int, err: int) -> None:
    with contextlib.suppress(AttributeError):
        sys.stdin.detach()  # type: ignore[union-attr]
    stdin = os.memfd_create("stdin")
    os.write(stdin, surroundings.stdin)
    os.lseek(stdin, 0, os.SEEK_SET)
    os.dup2(stdin, 0)
    for number, kind, kept in ((1, surroundings.stdout, out), (2, surroundings.stderr, err)):
        if kind == "closed":
            os.close(number)
            continue
        os.dup2(_stream(kind, kept), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (lives as long as the process)
    for name, number, kind in (("stdout", 1, surroundings.stdout), ("stderr", 2, surroundings.stderr)):
        if kind == "closed":
            setattr(sys, name, None)  # as Python starts without it
            continue
        errors = "backslashreplace" if number == 2 else surroundings.errors
        raw = open(number, "wb", buffering=8192, closefd=False)  # noqa: SIM115
        text = io.TextIOWrapper(raw, surroundings.encoding, errors, line_buffering=number == 2)
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)


def _stream(kind: Stream, kept: int) -> int:
    if kind == "full":
        return os.open("/dev/full", os.O_WRONLY)
    if kind == "closed pipe":
        reading, writing = os.pipe()
        os.close(reading)
        return writing
    return kept


def _finalise(status: int) -> int:
    """Do what the interpreter does after the program, in its order."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError) as error:
            status = 120
            if name == "stdout" and sys.stderr is not None:
                print(f"Exception ignored in: {stream!r}\n{type(error).__name__}: {error}", file=sys.stderr)
    return status


def import_everything() -> None:
    """Import what any command imports at any time."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a pool of threads would not survive the fork
    os.environ.setdefault("MPLBACKEND", "agg")
    import torch

    torch.set_num_threads(1)
    from firststep.cli import COMMANDS

    late = ("torch._dynamo", "torch._refs", "torch._decomp", "torch._meta_registrations", "filelock", "tyro")
    drawing = ("matplotlib.pyplot", "matplotlib.backends.backend_agg", "torch.utils.tensorboard", "PIL.Image")
    parts = ("firststep.paper", "firststep.__main__", "firststep.cli.data_view", "unittest.mock")
    for name in (*late, *drawing, *parts, *(f"firststep.cli.{command}" for command in COMMANDS)):
        importlib.import_module(name)
    from PIL import Image

    Image.init()
    gc.freeze()  # a collection in a child would write to all objects, and so copy them


def import_what_a_child_needed(function: Function, surroundings: Surroundings, seconds: float) -> Outcome:
    """Run a function in a child, then import here what it had to import there."""
    report = os.memfd_create("imported")

    def reporting() -> int:
        before = set(sys.modules)
        status = function()
        new = sorted(name for name in set(sys.modules) - before if not name.startswith("__"))
        os.write(report, json.dumps(new).encode())
        return status

    outcome = run(reporting, surroundings, seconds)
    for name in json.loads(content(report) or "[]"):
        with contextlib.suppress(Exception):  # a name in sys.modules need not be a module that can be found
            importlib.import_module(name)
    return outcome


def serve() -> None:
    """Run the commands of standard input until it ends."""
    adopt_orphans()
    import_everything()
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    for line in requests:
        asked = json.loads(line)
        surroundings = Surroundings(
            cwd=Path(asked["cwd"]), environment=asked["environment"], stdin=asked["input"].encode()
        )
        outcome = run(command(asked["arguments"]), surroundings, asked["timeout"], grace=10.0)
        answers.write(json.dumps(asdict(outcome)).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve()
