"""Lock files: held by one, waited for by others, released by death."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from firststep.utils import locked, try_lock

HOLD = """
import sys, time
from pathlib import Path
from firststep.utils import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_held_lock_is_refused_and_a_released_one_is_given(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = try_lock(path)
    assert lock is not None
    with lock:
        assert try_lock(path) is None
    again = try_lock(path)
    assert again is not None
    with again:
        pass


def test_a_killed_process_releases_its_lock_to_the_one_that_waits(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    killer = threading.Timer(0.3, holder.kill)
    waits: list[str] = []

    def on_wait() -> None:
        waits.append("waiting")
        killer.start()

    with locked(path, on_wait):
        assert waits == ["waiting"]
    holder.communicate()
