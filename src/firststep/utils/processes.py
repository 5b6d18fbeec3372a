"""Worker processes: the only place where firststep starts one."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import connection, resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

from firststep.utils.user_modules import import_user_modules

Send = Callable[[Any], None]


class WorkerProcess:
    """A function that runs in its own process and sends messages to this one.

    Ctrl-C in the terminal does not reach the worker: the parent decides what an interrupt means. The worker
    gets SIGTERM when the parent dies for any reason. Each worker has its own pipe, because a shared queue
    stays locked forever when one worker is killed while it writes.

    Args:
        function: called as ``function(send, *arguments)``; must be importable from its module.
        arguments: pickled and sent to the process.
        name: name of the process.
    """

    def __init__(self, function: Callable[..., None], *arguments: Any, name: str | None = None) -> None:
        context = multiprocessing.get_context("spawn")  # fork copies PyTorch's threads in an unknown state
        self.messages, sender = context.Pipe(duplex=False)
        self.process: BaseProcess = context.Process(
            target=_main, name=name, args=(function, arguments, sender)
        )
        with _interrupts_blocked():
            self.process.start()
        sender.close()  # so that the pipe ends with the process

    def receive(self) -> Any:
        """Wait for the next message and return it; None when the process has ended."""
        try:
            return self.messages.recv()
        except (EOFError, OSError):
            self.process.join()
            return None

    def terminate(self) -> None:
        """Ask it to stop (SIGTERM): training saves first, anything else stops at once."""
        self.process.terminate()

    def kill(self) -> None:
        """Stop it at once, and wait until it has ended."""
        self.process.kill()
        self.process.join()

    def exit_reason(self) -> str:
        """Return why the process ended, in a few words."""
        code = self.process.exitcode or 0
        if code == 0:
            return "its process was told to stop"
        if code == -getattr(signal, "SIGKILL", 9):
            return "its process was killed, perhaps because memory ran out"
        return f"its process died ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})"


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT in processes that are started inside the block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # otherwise Process.start starts it, which unblocks SIGINT
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _main(function: Callable[..., None], arguments: tuple[Any, ...], sender: connection.Connection) -> None:
    threading.Thread(target=_stop_with_parent, daemon=True).start()

    def send(message: Any) -> None:
        with contextlib.suppress(OSError):  # the parent died: SIGTERM follows
            sender.send(message)

    with contextlib.suppress(KeyboardInterrupt):  # raised by training after it was asked to stop and saved
        import_user_modules()
        function(send, *arguments)


def _stop_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
