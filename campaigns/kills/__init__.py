"""Kill a command, resume it, and compare the result with an uninterrupted run."""

from __future__ import annotations

import os
import shutil
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from campaigns import snapshot, warm
from campaigns.kills.compare import differences, results
from campaigns.kills.killers import MODES, Mode, count_operations, kill_before_operation, kill_in_write
from campaigns.kills.workloads import METHODS, WORKLOADS, Workload
from campaigns.processes import command_line, descendants
from campaigns.report import Result, Violation
from campaigns.stock import Stock
from campaigns.warm import Child, Outcome, Surroundings

KINDS = {
    **{f"train-{method}": 60 for method in METHODS},
    **dict.fromkeys(("data-folder", "evaluate"), 80),
    "data-archive": 60,
    "paper-inline": 50,
    "pretrain": 60,
    "train-outer-loop": 60,
    **dict.fromkeys(("compare", "adapt"), 30),
    "diagnose": 20,
    "sweep-worker": 10,
    **dict.fromkeys(("sweep-planner", "paper-worker", "torchrun-rank"), 8),
    "paper-planner": 6,
    "torchrun-launcher": 4,
    **dict.fromkeys(("demo-planner", "demo-worker"), 3),
}
"""Shares of a campaign. Commands with worker processes take half a minute a case."""

GRACE = 30.0
"""Seconds in which the processes of a killed command must be gone."""


@dataclass(frozen=True)
class Reference:
    """The command without a kill."""

    results: dict[str, str]
    seconds: float
    operations: int
    largest: int
    """bytes of the longest file"""


_references: dict[tuple[str, Path], Reference] = {}


class _Case:
    def __init__(self, kind: str, stock: Stock, folder: Path) -> None:
        self.workload: Workload = WORKLOADS[kind]
        self.kind, self.stock, self.folder = kind, stock, folder
        self.work = folder / "work"  # always the same path: some files tell it

    def prepare(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("work", "tmp", "home"):
            (self.folder / name).mkdir(parents=True)
        self.workload.prepare(self.work, self.stock)

    @property
    def surroundings(self) -> Surroundings:
        environment = self.stock.environment(self.folder / "tmp", self.folder / "home")
        if self.kind.startswith(("data", "paper")):
            environment["FIRSTSTEP_CACHE"] = str(self.work / "cache")
        return Surroundings(cwd=self.work, environment=environment)

    def start(self, surroundings: Surroundings, arguments: list[str] | None = None) -> Child:
        if arguments is None and self.workload.launcher:
            words = [*self.workload.launcher, "-m", "firststep", *self.workload.start(self.stock)]
            return Child(warm.program(words), surroundings)
        return Child(warm.command(arguments or self.workload.start(self.stock)), surroundings)

    def reference(self) -> Reference:
        key = self.kind.replace("worker", "planner").replace("rank", "launcher"), self.folder
        if key not in _references:
            self.prepare()
            report = os.memfd_create("operations")
            counted = replace(self.surroundings, before=count_operations(str(self.work), report))
            outcome = self.start(self.surroundings if self.workload.launcher else counted).wait(
                self.workload.seconds
            )
            if outcome.status != 0:
                raise RuntimeError(f"{self.kind} fails without a kill: {outcome.stderr[-1000:]}")
            os.lseek(report, 0, os.SEEK_SET)
            operations = int(os.read(report, 20) or 0)
            os.close(report)
            largest = max((p.stat().st_size for p in self.work.rglob("*") if p.is_file()), default=1)
            _references[key] = Reference(results(self.work), outcome.seconds, operations, largest)
        return _references[key]


def run_case(kind: str, seed: int, stock: Stock, folder: Path) -> Result:
    """Kill a command once or several times, finish the work, and compare."""
    begun = time.monotonic()
    rng = Random(f"{kind} {seed}")
    case = _Case(kind, stock, folder)
    if kind.startswith("demo"):
        _draw_glyphs(stock)
    reference = case.reference()
    case.prepare()
    many = case.workload.many_processes
    mode: Mode = "moment" if many else rng.choice(MODES)
    words, violations = [], []
    left: list[str] = []
    arguments: list[str] | None = None
    outcome: Outcome | None = None
    for _ in range(1 if many else rng.choice((1, 1, 1, 2, 3))):
        how, outcome = _killed(case, reference, mode, rng, arguments)
        words.append(how)
        left += outcome.left_behind
        if not many:
            arguments = case.workload.go_on(case.work, stock)
    assert outcome is not None
    if left:
        violations.append(
            Violation(promise=f"{kind}: a process is left after a kill", details="; ".join(left))
        )
    if outcome.status != 0:
        violations += _finish(case)
    expected, found = reference.results, results(case.work)
    if words_of_difference := differences(expected, found):
        details = ", ".join(words_of_difference[:6])
        violations.append(
            Violation(promise=f"{_family(kind)}: not as without a kill: {_files(details)}", details=details)
        )
    temporary = snapshot.temporary_files(snapshot.take(case.work))
    # torchrun's own folder of logs is not ours to remove.
    temporary += [f"TMPDIR/{p.name}" for p in (folder / "tmp").iterdir() if "torchelastic" not in p.name]
    if temporary:
        details = ", ".join(temporary[:5])
        violations.append(Violation(promise=f"{_family(kind)}: a temporary file is left", details=details))
    shutil.rmtree(folder, ignore_errors=True)
    return Result(
        campaign="kills",
        kind=kind,
        seed=seed,
        what=f"{kind}: killed {', then '.join(words)}",
        count=mode,
        violations=violations,
        seconds=time.monotonic() - begun,
    )


def _family(kind: str) -> str:
    return "train" if kind.startswith("train-") else kind


def _files(details: str) -> str:
    return details.partition(",")[0]


def _killed(
    case: _Case, reference: Reference, mode: Mode, rng: Random, arguments: list[str] | None
) -> tuple[str, Outcome]:
    """Run until it is killed; if it ends before that, once more with the kill at half the way."""
    share = rng.random()
    how, outcome = "", None
    for _ in range(6):
        if mode == "operation":
            n = 1 + int(share * reference.operations)
            how = f"before file operation {n} of {reference.operations}"
            before = kill_before_operation(str(case.work), n)
        elif mode == "torn write":
            size = 1 + int(share**3 * reference.largest)
            how, before = f"in the write of byte {size} of a file", kill_in_write(size)
        else:
            how, before = f"after {share * reference.seconds:.2f} of {reference.seconds:.2f} s", None
        surroundings = replace(case.surroundings, before=before)
        child = case.start(surroundings, arguments)
        if mode == "moment" and not child.ends_within(share * reference.seconds):
            how += f", {_kill(case.workload, child, rng)}"
        outcome = child.wait(case.workload.seconds, GRACE)
        if outcome.status != 0 or case.workload.victim != "itself" or arguments is not None:
            break
        case.prepare()
        share /= 2
    assert outcome is not None
    return how, outcome


def _kill(workload: Workload, child: Child, rng: Random) -> str:
    """Kill the process itself, or one of those that it has started."""
    if workload.victim == "itself":
        child.kill()
        return "itself"
    mark = "spawn_main" if workload.victim == "worker" else "firststep"
    victims: list[int] = []
    while not victims and not child.ends_within(0.05):
        victims = [pid for pid in descendants(child.pid) if mark in command_line(pid)]
    if victims:
        victim = rng.choice(sorted(victims))
        words = f"one of {len(victims)} {workload.victim}s"
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            words += ", which had just ended"
        return words
    return f"which had no {workload.victim} any more"


def _finish(case: _Case) -> list[Violation]:
    """Run the command that resumes after a kill; it must succeed."""
    arguments = case.workload.go_on(case.work, case.stock)
    outcome = case.start(case.surroundings, arguments).wait(case.workload.seconds, GRACE)
    if outcome.status != 0 or outcome.timed_out:
        promise = f"{_family(case.kind)}: cannot resume after a kill"
        details = f"firststep {' '.join(arguments)[:100]}: exit {outcome.status}: {outcome.stderr[-400:]}"
        return [Violation(promise=promise, details=details.replace("\n", " ⏎ "))]
    if outcome.left_behind:
        promise = f"{case.kind}: a process is left after resuming"
        return [Violation(promise=promise, details="; ".join(outcome.left_behind))]
    return []


def _draw_glyphs(stock: Stock) -> None:
    """Draw the demo's data once into the cache of the stock."""
    if not any((stock.folder / "cache").glob("glyphs-32px-*/dataset.json")):
        arguments = ["data", "glyphs", "--size", "32", "--sheet", str(stock.folder / "glyphs.png")]
        warm.run(warm.command(arguments), stock.surroundings(stock.folder), 600)
