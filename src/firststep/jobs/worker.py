"""A process of this machine that carries out one job."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing import connection, resource_tracker
from multiprocessing.process import BaseProcess

from firststep.allocator import keep_freed_memory
from firststep.jobs.job import Job, Report
from firststep.jobs.work import carry_out


class Worker:
    """One job in a process of its own, so that its death hurts nobody else.

    It has a pipe of its own too: a queue that all share is locked for ever when a process is killed while
    it writes.
    """

    def __init__(self, job: Job, threads: int, device: str | None) -> None:
        """``device`` is the only GPU that the process sees; None leaves what it sees unchanged."""
        context = multiprocessing.get_context(
            "spawn"
        )  # fork would copy PyTorch's threads in an unknown state
        self.job = job
        self.reports, theirs = context.Pipe(duplex=False)
        self.process: BaseProcess = context.Process(
            target=_main, name=job.name, args=(job, threads, device, theirs)
        )
        with _interrupts_blocked():
            self.process.start()
        theirs.close()  # so that the end of theirs is the end of the pipe

    def ask_to_stop(self) -> None:
        """Training saves and stops; anything else stops at once."""
        self.process.terminate()

    def read(self) -> Report | None:
        """The next report; None when the process is gone. Waits for either."""
        try:
            report: Report = self.reports.recv()
            return report
        except (EOFError, OSError):
            self.process.join()
            return None

    def why_it_died(self) -> str:
        code = self.process.exitcode or 0
        if code == 0:
            return "its process was told to stop"
        if code == -signal.SIGKILL:
            return "its process was killed, perhaps for want of memory"
        return f"its process died ({signal.Signals(-code).name if code < 0 else f'exit code {code}'})"


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A process started within never sees the terminal's Ctrl-C: the planner alone decides what it means."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # else starting it would unblock them again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _main(job: Job, threads: int, device: str | None, reports: connection.Connection) -> None:
    threading.Thread(target=_stop_with_the_planner, daemon=True).start()
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device  # before CUDA starts
    keep_freed_memory()  # the process is ours

    def send(report: Report) -> None:
        with contextlib.suppress(OSError):  # the planner is gone: we are about to be told to save and stop
            reports.send(report)

    with contextlib.suppress(KeyboardInterrupt):  # asked to stop: it has saved
        send(carry_out(job, send, threads))


def _stop_with_the_planner() -> None:
    """When the planner dies, however it does, its workers save and stop: the next planner goes on."""
    planner = multiprocessing.parent_process()
    assert planner is not None
    connection.wait([planner.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
