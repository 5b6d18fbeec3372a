"""Freed memory stays with the process, where the C library can be told so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from pathlib import Path
import torch
from firststep.allocator import keep_freed_memory

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 2**10

told = {call}
start = resident()
large = torch.ones(2**26)  # 256 MiB
del large
print(told, resident() - start)
"""

needs_linux = pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="reads Linux's /proc")


def run(call: str, **environment: str) -> tuple[str, float]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(call=call)],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    told, grown = done.stdout.split()
    return told, float(grown)


@pytest.mark.slow
@needs_linux
def test_freed_memory_is_kept() -> None:
    told, grown = run("keep_freed_memory()")
    if told == "False":
        pytest.skip("this C library has no mallopt")
    assert grown > 200
    assert run("None")[1] < 50


@needs_linux
def test_the_users_own_settings_stay() -> None:
    told, grown = run("keep_freed_memory()", MALLOC_ARENA_MAX="8")
    assert told == "False"
    assert grown < 50


@needs_linux
@pytest.mark.parametrize(("value", "stays"), [(None, "1"), ("0", "0")])
def test_large_pages_are_asked_for_unless_the_user_said_otherwise(value: str | None, stays: str) -> None:
    setting = {} if value is None else {"THP_MEM_ALLOC_ENABLE": value}
    clean = {
        name: text for name, text in os.environ.items() if not name.startswith(("MALLOC_", "THP_", "GLIBC_"))
    }
    program = (
        "import os; from firststep.allocator import keep_freed_memory; "
        "print(keep_freed_memory(), os.environ.get('THP_MEM_ALLOC_ENABLE'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**clean, **setting}, capture_output=True, text=True, check=True
    )
    told, found = done.stdout.split()
    if told == "False":
        pytest.skip("this C library has no mallopt")
    assert found == stays


@pytest.mark.slow
@needs_linux
def test_what_was_freed_can_be_given_back_once() -> None:
    told, grown = run("keep_freed_memory()")
    if told == "False":
        pytest.skip("this C library has no mallopt")
    call = "from firststep.allocator import give_back_freed_memory as give_back; give_back()"
    given_back = PROGRAM.replace("del large", f"del large; {call}")
    done = subprocess.run(
        [sys.executable, "-c", given_back.format(call="keep_freed_memory()")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert float(done.stdout.split()[1]) < 50 < grown
