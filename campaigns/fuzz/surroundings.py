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

NOBODY = 65534


def case(rng: Random, sandbox: Sandbox) -> Case:
    made: Case = rng.choice(KINDS)(rng, sandbox)
    return made


def _command(rng: Random, sandbox: Sandbox, out: str) -> tuple[list[str], str]:
    """A command that works, and that writes to ``out``; with the name of what it writes."""
    stock = sandbox.stock
    images = ["--support", str(stock.support), "--query", str(stock.folder / "query.png"), "--steps", "1"]
    choices: list[tuple[list[str], str]] = [
        (["adapt", str(stock.run), *images, "--out", out], out),
        (["compare", str(stock.run), *QUICK_TEST, "--out", out], out),
        (
            ["diagnose", str(stock.run), "--tasks", "1", "--shots", "2", "--plot", f"{out}/plot.png"],
            f"{out}/plot.png",
        ),
        (["evaluate", str(stock.run), *QUICK_TEST, "--out", out], out),
        (["data", "folder", str(stock.pictures), "--size", "16", "--sheet", f"{out}/s.png"], f"{out}/s.png"),
        (["data", "folder", str(stock.pictures), "--size", "8", "--cache", out, "--sheet", "s.png"], out),
        (["train", "demo", *TINY, *stock.data_flags, "--updates", "2", "--out", out], out),
        (["paper", "show", "table1", "--runs", "none", "--out", out], out),
        (
            ["paper", "report", "--results", str(stock.results), "--out", f"{out}/page.html"],
            f"{out}/page.html",
        ),
    ]
    return rng.choice(choices)


def _output_is_a_file(rng: Random, sandbox: Sandbox) -> Case:
    (sandbox.work / "file").write_text("mine")
    (sandbox.work / "link").symlink_to("nowhere/at/all")
    (sandbox.work / "loop").symlink_to("loop")
    out = rng.choice(("file", "file/deep", "link", "loop", "loop/x", "/dev/null/x", "/proc/x", "/dev/full"))
    arguments, _ = _command(rng, sandbox, out)
    return Case(what=" ".join(arguments), arguments=arguments, expected="bad", writes=("s.png",))


def _no_permission(rng: Random, sandbox: Sandbox) -> Case:
    """The superuser may write everywhere, so the child becomes nobody."""
    (sandbox.work / "locked").mkdir()
    out = rng.choice(("locked", "locked/deep"))
    arguments, _ = _command(rng, sandbox, out)

    def become_nobody() -> None:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)

    can = os.getuid() == 0 and _readable(sandbox)
    return Case(
        what=f"as nobody: {' '.join(arguments)}",
        arguments=arguments,
        expected="bad" if can else "any",
        before=become_nobody if can else None,
        writes=() if can else ("locked", "s.png"),
    )


def _readable(sandbox: Sandbox) -> bool:
    """Whether others may look into the folders above: a temporary folder is often the owner's alone."""
    for folder in [sandbox.stock.folder, *sandbox.stock.folder.parents[:-1]]:
        if folder.stat().st_uid == os.getuid() and folder != folder.parent:
            mode = folder.stat().st_mode
            if not mode & 0o001:
                os.chmod(folder, mode | 0o055)
    cache = sandbox.stock.folder / "cache"
    for path in (cache, *cache.rglob("*")):
        os.chmod(path, 0o777)
    return True


def _disk_full(rng: Random, sandbox: Sandbox) -> Case:
    """A limit on the size of files: the write that passes it fails, as on a disk that is full."""
    size = rng.choice((0, 1, 100, 1000, 5000, 20_000))
    arguments, _ = _command(rng, sandbox, "out")
    return Case(
        what=f"files of at most {size} bytes: {' '.join(arguments)}",
        arguments=arguments,
        before=lambda: _limit_files(size),
        writes=("out", "s.png"),
    )


def _limit_files(size: int) -> None:
    """Standard output and error go through a pipe to a process without the limit."""
    for number in (1, 2):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(writing)
            for other in (0, 1, 2):
                if other != number:
                    os.close(other)
            while data := os.read(reading, 1 << 16):
                os.write(number, data)
            os._exit(0)
        os.close(reading)
        os.dup2(writing, number)
        os.close(writing)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _streams(rng: Random, sandbox: Sandbox) -> Case:
    """Nobody reads, or nothing more fits."""
    stream = rng.choice(("full", "closed pipe", "closed"))
    arguments, _ = _any_command(rng, sandbox)
    return Case(
        what=f"stdout {stream}: {' '.join(arguments)}",
        arguments=arguments,
        stdout=stream,  # type: ignore[arg-type]
        expected="bad" if stream == "full" else "any",
        writes=("out", "s.png"),
    )


def _error_stream(rng: Random, sandbox: Sandbox) -> Case:
    stream = rng.choice(("full", "closed pipe", "closed"))
    arguments, _ = _any_command(rng, sandbox)
    if rng.random() < 0.5:
        arguments = ["evaluate", "nowhere"]
    return Case(
        what=f"stderr {stream}: {' '.join(arguments)}",
        arguments=arguments,
        stderr=stream,  # type: ignore[arg-type]
        statuses=(0, 1, 2, 120),  # nobody could be told
        writes=("out", "s.png"),
    )


def _any_command(rng: Random, sandbox: Sandbox) -> tuple[list[str], str]:
    others: list[list[str]] = [
        ["data", "list"],
        ["--help"],
        ["--version"],
        ["train", "--help"],
        ["paper", "list"],
    ]
    others += [["parameters", "--backbone", "conv4", "--filters", "4"]]
    return rng.choice((*((each, "") for each in others), *(_command(rng, sandbox, "out") for _ in range(6))))


def _terminal(rng: Random, sandbox: Sandbox) -> Case:
    """Other encodings, widths and settings of a terminal."""
    environment = rng.choice(
        (
            {"LC_ALL": "C"}, {"LC_ALL": "xx_YY"}, {"COLUMNS": "1"}, {"COLUMNS": "0"}, {"COLUMNS": "x"},
            {"COLUMNS": "100000"}, {"TERM": "dumb"}, {"TERM": ""}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1"},
            {"TTY_COMPATIBLE": "1"}, {"HOME": "/nowhere"}, {"HOME": ""}, {"TMPDIR": "/nowhere"},
            {"MPLBACKEND": "nonsense"}, {"FIRSTSTEP_IMPORT": ","},
            {"FIRSTSTEP_CACHE": "/dev/null/x"}, {"WORLD_SIZE": "x"},
            {"RANK": "x"}, {"RANK": "1"}, {"LOCAL_RANK": "0"}, {"TORCHELASTIC_RUN_ID": "1"},
            {"OMP_NUM_THREADS": "x"}, {"CUDA_VISIBLE_DEVICES": "x"},
        )
    )  # fmt: skip
    arguments, _ = _any_command(rng, sandbox)
    encoding = rng.choice(("utf-8", "ascii", "latin-1", "cp1252", "utf-16"))
    return Case(
        what=f"{environment} {encoding}: {' '.join(arguments)}",
        arguments=arguments,
        environment=environment,
        encoding=encoding,
        writes=("out", "s.png", "home"),
    )


def _folder_gone(rng: Random, sandbox: Sandbox) -> Case:
    arguments, _ = _any_command(rng, sandbox)

    def remove() -> None:
        shutil.rmtree(sandbox.work)

    return Case(
        what=f"working folder removed: {' '.join(arguments)}",
        arguments=arguments,
        before=remove,
        writes=("",),
    )


def _interrupted(rng: Random, sandbox: Sandbox) -> Case:
    """Ctrl-C at any moment: 130 and a line, unless it had ended before."""
    arguments, _ = _command(rng, sandbox, "out")
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

    return Case(
        what=f"Ctrl-C after {delay:.3f} s: {' '.join(arguments)}",
        arguments=arguments,
        before=later,
        statuses=(0, 130),
        writes=("out", "s.png"),
    )


KINDS: tuple[Callable[[Random, Sandbox], Case], ...] = (
    *(
        _output_is_a_file,
        _no_permission,
        _disk_full,
        _streams,
        _error_stream,
        _terminal,
        _folder_gone,
        _interrupted,
    ),
)
