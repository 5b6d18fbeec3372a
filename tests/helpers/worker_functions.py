"""Functions for worker processes; as a program, a parent that prints its worker's process id and waits."""

from __future__ import annotations

import sys
import time

from firststep.utils import Send, WorkerProcess


def echo(send: Send, *values: object) -> None:
    for value in values:
        send(value)


def fail(send: Send) -> None:
    sys.exit(3)


def sleep(send: Send) -> None:
    send("started")
    time.sleep(600)


if __name__ == "__main__":
    worker = WorkerProcess(sleep)
    worker.receive()
    print(worker.process.pid, flush=True)
    time.sleep(600)
