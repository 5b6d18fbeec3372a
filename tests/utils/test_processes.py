"""Worker processes: messages, exits, interrupts, and the death of the parent."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import worker_functions
from firststep.utils import WorkerProcess
from living import all_gone, is_alive

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def test_messages_come_in_order_and_end_with_the_process() -> None:
    worker = WorkerProcess(worker_functions.echo, "one", 2)
    assert [worker.receive() for _ in range(3)] == ["one", 2, None]
    assert worker.exit_reason() == "its process was told to stop"


def test_the_reason_of_an_exit_is_named() -> None:
    worker = WorkerProcess(worker_functions.fail)
    assert worker.receive() is None
    assert worker.exit_reason() == "its process died (exit code 3)"
    worker = WorkerProcess(worker_functions.sleep)
    assert worker.receive() == "started"
    worker.kill()
    assert "its process was killed" in worker.exit_reason()
    worker = WorkerProcess(worker_functions.sleep)
    assert worker.receive() == "started"
    worker.terminate()
    assert worker.receive() is None
    assert worker.exit_reason() == "its process died (SIGTERM)"


@LINUX
@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_ends_with_its_parent_and_not_by_an_interrupt(death: signal.Signals) -> None:
    program = [sys.executable, str(Path(worker_functions.__file__))]
    parent = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    blocked = next(
        line for line in Path(f"/proc/{worker}/status").read_text().splitlines() if line.startswith("SigBlk")
    )
    assert int(blocked.split()[1], 16) & (1 << (signal.SIGINT - 1))
    assert is_alive(worker)
    parent.send_signal(death)
    parent.communicate()
    assert all_gone([worker], 240)
