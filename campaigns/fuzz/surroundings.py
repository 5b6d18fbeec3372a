"""Commands that are right in surroundings that are not: full disks, closed pipes, terminals, interrupts."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import threading
from collections.abc import Callable
from random import Random

from campaigns.fuzz.case import Case, Sandbox
from campaigns.stock import QUICK_TEST, TINY
from campaigns.warm import Stream

NOBODY = 65534
STREAMS: tuple[Stream, ...] = ("full", "closed pipe", "closed")
NOT_FOLDERS = ("file", "file/deep", "link", "loop", "loop/x", "/dev/null/x", "/proc/x", "/dev/full")
QUICK = (
    "data list",
    "--help",
    "--version",
    "train --help",
    "paper list",
    "parameters --backbone conv4 --filters 4",
)
ENVIRONMENTS = """
    LC_ALL=C LC_ALL=xx_YY COLUMNS=1 COLUMNS=0 COLUMNS=x COLUMNS=100000 TERM=dumb TERM= NO_COLOR=1
    FORCE_COLOR=1 TTY_COMPATIBLE=1 HOME=/nowhere HOME= TMPDIR=/nowhere MPLBACKEND=nonsense FIRSTSTEP_IMPORT=,
    FIRSTSTEP_CACHE=/dev/null/x WORLD_SIZE=x RANK=x RANK=1 LOCAL_RANK=0 TORCHELASTIC_RUN_ID=1
    OMP_NUM_THREADS=x CUDA_VISIBLE_DEVICES=x
"""
ENCODINGS = ("utf-8", "ascii", "latin-1", "cp1252", "utf-16")


def surroundings(rng: Random, sandbox: Sandbox) -> Case:
    change: Callable[[Random, Sandbox], Case] = rng.choice(CHANGES)
    return change(rng, sandbox)


def _writing(rng: Random, sandbox: Sandbox, out: str = "out") -> Case:
    """Return a command that works and writes to ``out``."""
    stock = sandbox.stock
    pictures = ["--support", str(stock.support), "--query", str(stock.folder / "query.png"), "--steps", "1"]
    data = ["data", "folder", str(stock.pictures)]
    arguments = rng.choice(
        (
            ["adapt", str(stock.run), *pictures, "--out", out],
            ["compare", str(stock.run), *QUICK_TEST, "--out", out],
            ["diagnose", str(stock.run), "--tasks", "1", "--shots", "2", "--plot", f"{out}/plot.png"],
            ["evaluate", str(stock.run), *QUICK_TEST, "--out", out],
            [*data, "--size", "16", "--sheet", f"{out}/s.png"],
            [*data, "--size", "8", "--cache", out, "--sheet", "s.png"],
            ["train", "demo", *TINY, *stock.data_flags, "--updates", "2", "--out", out],
            ["paper", "show", "table1", "--runs", "none", "--out", out],
            ["paper", "report", "--results", str(stock.results), "--out", f"{out}/page.html"],
        )
    )
    return Case(what=" ".join(arguments), arguments=arguments, writes=("out", "s.png"))


def _any(rng: Random, sandbox: Sandbox) -> Case:
    """Return a command that works, writing or not."""
    case = _writing(rng, sandbox)
    if rng.random() < 0.5:
        case.arguments = rng.choice(QUICK).split()
    return case


def _output_is_no_folder(rng: Random, sandbox: Sandbox) -> Case:
    (sandbox.work / "file").write_text("mine")
    (sandbox.work / "link").symlink_to("nowhere/at/all")
    (sandbox.work / "loop").symlink_to("loop")
    case = _writing(rng, sandbox, rng.choice(NOT_FOLDERS))
    case.expected, case.writes = "bad", ("s.png",)
    return case


def _no_permission(rng: Random, sandbox: Sandbox) -> Case:
    """Run as nobody, because the superuser may write everywhere."""
    (sandbox.work / "locked").mkdir()
    case = _writing(rng, sandbox, rng.choice(("locked", "locked/deep")))
    case.writes = ("locked", "s.png")
    if os.getuid() == 0:
        _make_readable(sandbox)
        case.before, case.expected, case.writes = _become_nobody, "bad", ()
    return case


def _become_nobody() -> None:
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def _make_readable(sandbox: Sandbox) -> None:
    """Let others read the stock: a temporary folder is often its owner's alone."""
    for folder in [sandbox.stock.folder, *sandbox.stock.folder.parents[:-1]]:
        mode = folder.stat().st_mode
        if folder.stat().st_uid == os.getuid() and not mode & 0o001:
            os.chmod(folder, mode | 0o055)
    cache = sandbox.stock.folder / "cache"
    for path in (cache, *cache.rglob("*")):
        os.chmod(path, 0o777)


def _disk_full(rng: Random, sandbox: Sandbox) -> Case:
    """Limit the size of files: the write that passes the limit fails, as on a full disk."""
    size, case = rng.choice((0, 1, 100, 1000, 5000, 20_000)), _writing(rng, sandbox)
    case.what, case.before = f"files of at most {size} bytes: {case.what}", lambda: _limit_files(size)
    return case


def _limit_files(size: int) -> None:
    """Send standard output and error through a pipe to a process without the limit."""
    for number in (1, 2):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(writing)
            for other in {0, 1, 2} - {number}:
                os.close(other)
            while data := os.read(reading, 1 << 16):
                os.write(number, data)
            os._exit(0)
        os.close(reading)
        os.dup2(writing, number)
        os.close(writing)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _stdout(rng: Random, sandbox: Sandbox) -> Case:
    case = _any(rng, sandbox)
    case.stdout = rng.choice(STREAMS)
    case.expected = "bad" if case.stdout == "full" else "any"
    return case


def _stderr(rng: Random, sandbox: Sandbox) -> Case:
    case = _any(rng, sandbox)
    case.stderr, case.statuses = rng.choice(STREAMS), (0, 1, 2, 120)
    if rng.random() < 0.5:
        case.arguments = ["evaluate", "nowhere"]
    return case


def _terminal(rng: Random, sandbox: Sandbox) -> Case:
    case = _any(rng, sandbox)
    name, _, value = rng.choice(ENVIRONMENTS.split()).partition("=")
    case.environment, case.encoding = {name: value}, rng.choice(ENCODINGS)
    case.writes = (*case.writes, "home")
    return case


def _folder_gone(rng: Random, sandbox: Sandbox) -> Case:
    case = _any(rng, sandbox)
    case.before, case.writes = lambda: shutil.rmtree(sandbox.work), ("",)
    return case


def _interrupted(rng: Random, sandbox: Sandbox) -> Case:
    """Send Ctrl-C at any moment: 130 and a line, unless the command has ended before."""
    delay = rng.choice((0.01, 0.03, rng.uniform(0, 0.3), rng.uniform(0, 0.8)))

    def later() -> None:
        main = threading.main_thread().ident
        assert main is not None
        timer = threading.Timer(delay, signal.pthread_kill, (main, signal.SIGINT))
        timer.daemon = True
        # It must not meet the start of the thread that sends it, which is not part of the command.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        timer.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    case = _writing(rng, sandbox)
    case.what, case.before, case.statuses = f"Ctrl-C after {delay:.3f} s: {case.what}", later, (0, 130)
    return case


CHANGES = (
    *(_output_is_no_folder, _no_permission, _disk_full, _stdout, _stderr, _terminal, _folder_gone),
    _interrupted,
)
