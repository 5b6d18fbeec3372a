"""Freed memory stays with the process, where the C library can be told so."""

from __future__ import annotations

import os
import platform
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

needs_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
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


SCOPED = """
import resource
import torch
from firststep.allocator import freed_memory_kept, keep_freed_memory

def faults(count, size):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(count):
        torch.ones(size)  # freed at once
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / count

if {for_good}:
    keep_freed_memory()
faults(1, 2**27)
outside = faults(4, 2**27)
with freed_memory_kept():
    with freed_memory_kept():
        faults(30, 2**24)  # a few times small things settle in what was freed, then it stays as it is
    inside = faults(30, 2**24)
after = faults(4, 2**27)  # larger than what was kept
print(outside, inside, after)
"""


def page_faults(for_good: bool = False, **environment: str) -> list[float]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    program = SCOPED.format(for_good=for_good)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(word) for word in done.stdout.split()]


@needs_glibc
def test_freed_memory_is_kept_inside_and_usual_outside() -> None:
    outside, inside, after = page_faults()
    assert inside < outside / 8 / 4  # of a tensor that is an eighth of the others
    assert after > outside / 2


@needs_glibc
def test_what_is_kept_for_good_stays_so() -> None:
    usual, _, _ = page_faults()
    assert max(page_faults(for_good=True)) < usual / 4


@needs_glibc
def test_inside_too_the_users_own_settings_stay() -> None:
    outside, inside, _ = page_faults(MALLOC_ARENA_MAX="8")
    assert inside > outside / 8 / 4
