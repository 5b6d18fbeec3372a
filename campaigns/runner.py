"""Run many cases, spread over processes that each fork their own children."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from campaigns.processes import adopt_orphans
from campaigns.report import Result
from campaigns.stock import Stock, make_stock
from campaigns.warm import import_everything

RunCase = Callable[[str, int, Stock, Path], Result]


@dataclass(frozen=True)
class Planned:
    campaign: str
    kind: str
    seed: int


def plan(campaign: str, shares: dict[str, int], cases: int, seed: int) -> list[Planned]:
    """Divide ``cases`` among the kinds by their shares and mix them; a pure function of the seed."""
    total = sum(shares.values())
    planned: list[Planned] = []
    for number, (kind, share) in enumerate(shares.items()):
        before = sum(list(shares.values())[:number])
        count = cases * (before + share) // total - cases * before // total
        rng = Random(f"{campaign} {kind} {seed}")
        planned += [Planned(campaign, kind, rng.randrange(10**9)) for _ in range(count)]
    Random(seed).shuffle(planned)
    return planned


def run_all(planned: Sequence[Planned], run_case: dict[str, RunCase], jobs: int) -> Iterator[Result]:
    """Yield the results as they come; ``jobs`` processes share the cases."""
    base = Path(tempfile.mkdtemp(prefix="firststep-campaign-"))
    adopt_orphans()
    import_everything()
    try:
        stock = make_stock(base / "stock")
        if jobs == 1:
            for each in planned:
                yield run_case[each.campaign](each.kind, each.seed, stock, base / "case")
        else:
            yield from _in_shards(planned, run_case, jobs, stock, base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _in_shards(
    planned: Sequence[Planned], run_case: dict[str, RunCase], jobs: int, stock: Stock, base: Path
) -> Iterator[Result]:
    reading, writing = os.pipe()
    pids = []
    sys.stdout.flush()
    for number in range(jobs):
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _shard(planned[number::jobs], run_case, stock, base / f"shard{number}", writing)
        pids.append(pid)
    os.close(writing)
    received = 0
    try:
        with open(reading, encoding="utf-8") as lines:
            for line in lines:
                received += 1
                yield Result.from_line(line)
    finally:
        for pid in pids:
            if received < len(planned):  # interrupted, or a shard has failed
                os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
    if received < len(planned):
        raise RuntimeError(f"only {received} of {len(planned)} cases were run")


def _shard(
    planned: Sequence[Planned], run_case: dict[str, RunCase], stock: Stock, folder: Path, pipe: int
) -> None:
    status = 1
    try:
        adopt_orphans()
        for each in planned:
            result = run_case[each.campaign](each.kind, each.seed, stock, folder / "case")
            os.write(pipe, f"{result.to_line()}\n".encode()[: 1 << 20])
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def progress(results: Iterator[Result], total: int) -> Iterator[Result]:
    """Yield the results, and print the progress on standard error."""
    start = last = time.monotonic()
    broken = 0
    for number, result in enumerate(results, 1):
        broken += bool(result.violations)
        now = time.monotonic()
        if now - last > 10 or number == total:
            last = now
            rate = number / (now - start)
            print(
                f"{number}/{total} cases, {rate:.1f} a second, {broken} with violations",
                file=sys.stderr,
                flush=True,
            )
        yield result
