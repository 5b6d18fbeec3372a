"""Time and peak memory of one exact meta-gradient: firststep beside higher, torchopt and plain autograd.

Each contender runs in a fresh process. Its gradient is checked against plain autograd's before anything is
timed; then the contenders of a setting take turns, so that a slow moment of the machine meets all of them. In
its turn each is called twice, and the second call counts: of a process that waits, a system may take memory.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from contenders import FLOAT64, FOUR, FREED_KEPT, ROUNDED

HERE = Path(__file__).parent
# Float32 through many steps on noise is no better: for Conv4-64, 84 px, K = 5, plain autograd's own float32
# gradient is 0.007 from its float64 one. (Exactness is tested in float64: tests/metagradient.)
TOLERANCE = 0.02
# Where float32 gradients differ by more, all are compared with the float64 one: none of them may be so many
# times as far from it as the nearest peer's is.
FACTOR = 2.0
EXACT = 1e-6
PEERS = ("higher", "torchopt", "plain autograd", "plain autograd, torch's batch norm")
AUTOGRAD = PEERS[2:]
JAX = ("JAX, jit", "JAX, jit, scan with remat")  # Conv4 only
OURS = ("firststep", "firststep + cls")
EAGER = ("firststep eager", "firststep eager, nothing kept")
KEPT = (f"firststep{FREED_KEPT}", f"torchopt{FREED_KEPT}")


class Setting(NamedTuple):
    network: str
    steps: int
    contenders: tuple[str, ...]
    repeats: int


def _subset(ours: str, subset: str) -> tuple[str, ...]:
    return ours, f"{ours} + {subset}", f"plain autograd, loop + {subset}"


ALL = (
    "firststep eager + all",
    *(f"{name} + all{FREED_KEPT}" for name in ("firststep", "plain autograd, loop")),
)

SETTINGS = [
    # What the targets are about first, so that a run that is cut short has said the most.
    Setting("Conv4-64, 84 px", 5, (*OURS, *EAGER, *PEERS, *JAX, *KEPT, ROUNDED, f"{ROUNDED}{FREED_KEPT}"), 3),
    Setting("Conv4-32, 28 px", 5, (*OURS, *EAGER, *PEERS, *JAX, *KEPT, FOUR, f"{FOUR}{FREED_KEPT}"), 9),
    Setting("Conv4-64, 32 px", 5, (*OURS, *EAGER, *PEERS, *JAX, FOUR, f"{FOUR}{FREED_KEPT}"), 5),
    # The other subsets, beside the loop over samples that one would write first
    Setting("Conv4-32, 28 px", 5, (*_subset("firststep", "all"), *ALL), 3),
    Setting("ResNet10, 84 px", 5, ("firststep", *PEERS), 2),
    # Many steps, beside the two peers that are fastest with few
    Setting("Conv4-64, 84 px", 20, ("firststep", *AUTOGRAD, JAX[1]), 1),
    Setting("Conv4-64, 32 px", 5, (*_subset("firststep", "all"), *ALL), 2),
    Setting("Conv4-32, 28 px", 20, ("firststep", *AUTOGRAD), 7),
    Setting("Conv4-64, 32 px", 20, ("firststep", *AUTOGRAD), 3),
    Setting("ResNet18, 84 px", 5, ("firststep", *AUTOGRAD), 2),
    Setting("ResNet10, 84 px", 20, ("firststep", *AUTOGRAD), 1),
    Setting("Conv4-64, 32 px", 5, _subset("firststep", "emb"), 5),
    Setting("Conv4-64, 84 px", 5, _subset("firststep", "emb"), 2),
    Setting("Conv4-32, 28 px", 5, _subset("firststep eager", "cls"), 9),
]


class Died(Exception):
    """A contender's process ended, killed for want of memory for example."""


@dataclass
class Entry:
    process: subprocess.Popen[str]
    gradient: Path
    first: float = 0.0
    seconds: list[float] = field(default_factory=list)
    megabytes: float = 0.0
    first_megabytes: float = 0.0

    @property
    def peak(self) -> float:
        """Return the peak memory, including the first call, which may compile."""
        return max(self.megabytes, self.first_megabytes)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def ask(self) -> None:
        assert self.process.stdin is not None
        for _ in range(2):
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            answer = self.answer()
        self.seconds.append(answer["seconds"])
        self.megabytes = answer["megabytes"]

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Died(f"ended with status {self.process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found


@dataclass
class Measured:
    """The medians of one setting, by contender."""

    network: str
    steps: int
    floor: float
    seconds: dict[str, float]
    peak: dict[str, float]
    later_peak: dict[str, float]
    """Seconds, without the first call."""
    first: dict[str, float]
    own_floor: float = math.nan
    """Seconds if every convolution ran at its own best speed."""
    floor_of_all: float = math.nan
    """Seconds with conditioning on all parameters; missing in earlier runs."""
    code: str = ""
    """The commit; settings of two commits are not compared."""

    def contains_peers(self) -> bool:
        return "firststep" in self.seconds and any(peer in self.seconds for peer in PEERS)


def summary(setting: Setting, entries: dict[str, Entry], floors: dict[str, float]) -> Measured:
    return Measured(
        setting.network,
        setting.steps,
        floors[""],
        seconds={name: entry.median for name, entry in entries.items()},
        peak={name: entry.peak for name, entry in entries.items()},
        later_peak={name: entry.megabytes for name, entry in entries.items()},
        first={name: entry.first for name, entry in entries.items()},
        own_floor=floors["own speed"],
        floor_of_all=floors["all"],
    )


def start(setting: Setting, contender: str, path: Path) -> Entry:
    """Start a contender and wait for its first call, which compiles undisturbed."""
    script = [sys.executable, "-W", "ignore", str(HERE / "worker.py")]
    process = subprocess.Popen(
        [*script, setting.network, contender, str(setting.steps), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    entry = Entry(process, path)
    answer = entry.answer()
    entry.first, entry.first_megabytes = answer["seconds"], answer["megabytes"]
    return entry


def constrained(contender: str) -> str:
    """Return the parameter subset that a contender conditions, if any."""
    return contender.removesuffix(FREED_KEPT).partition(" + ")[2]


def distance(one: Path, other: Path) -> float:
    """Return the distance relative to the second."""
    mine, theirs = torch.load(one), torch.load(other)
    square = sum((mine[n].double() - theirs[n].double()).square().sum() for n in theirs)
    return float((square / sum(value.double().square().sum() for value in theirs.values())) ** 0.5)


def agreement(setting: Setting, entries: dict[str, Entry], folder: Path) -> str:
    """Return how well the gradients agree, in words; end the benchmark if they do not."""
    groups: dict[str, dict[str, Entry]] = {}
    for name, entry in entries.items():
        if name.removesuffix(FREED_KEPT) != ROUNDED:
            groups.setdefault(constrained(name), {})[name] = entry
    words = [_agree(setting, subset, group, folder) for subset, group in groups.items() if len(group) > 1]
    if {ROUNDED, "firststep"} <= entries.keys():
        away = distance(entries[ROUNDED].gradient, entries["firststep"].gradient)
        words.append(f"{ROUNDED}: {away:.2g} from firststep's")
    return "; ".join(words) or "nothing to compare with"


def _agree(setting: Setting, subset: str, entries: dict[str, Entry], folder: Path) -> str:
    """Return whether contenders that compute the same thing agree."""
    what = f"gradients with {subset}" if subset else "gradients"
    worst = difference(entries)
    if worst < TOLERANCE:
        return f"{what} agree to {worst:.0e}"
    plus = f" + {subset}" if subset else ""
    reference = start(setting, f"{FLOAT64}{plus}", folder / f"float64{subset}.pt")
    reference.process.kill()
    away = {name: distance(entry.gradient, reference.gradient) for name, entry in entries.items()}
    nearest = min(far for name, far in away.items() if not name.startswith("firststep"))
    told = (
        f"float32 {what} differ by {worst:.0e}, by rounding: from the float64 gradient, "
        f"peers' are {nearest:.2g} away or more, the farthest of all {max(away.values()):.2g}"
    )
    if max(away.values()) <= FACTOR * nearest:
        return told
    # A maximum or a sign that is a near tie may fall to the other side in one float32 program and not in
    # another. So the compiled program must show in float64 that it computes the same.
    compiled = start(setting, f"{FLOAT64}, compiled{plus}", folder / f"compiled{subset}.pt")
    compiled.process.kill()
    error = distance(compiled.gradient, reference.gradient)
    if not error < EXACT:
        raise SystemExit(f"{setting}: {what} differ, in float64 by {error:.1e}; float32's are away {away}")
    return f"{told}; in float64, firststep's compiled program agrees to {error:.0e}"


def difference(entries: dict[str, Entry]) -> float:
    """Return the largest relative difference between contenders that compute the same thing."""
    worst = 0.0
    for one in entries.values():
        for other in entries.values():
            error = distance(one.gradient, other.gradient)
            if not error <= worst:  # so that NaN counts
                worst = error
    return worst


def measure(setting: Setting) -> tuple[dict[str, Entry], str]:
    with tempfile.TemporaryDirectory() as folder:
        entries: dict[str, Entry] = {}
        try:
            for number, name in enumerate(setting.contenders):
                try:
                    entries[name] = start(setting, name, Path(folder) / f"{number}.pt")
                except Died as error:
                    print(f"{name} {error}", flush=True)
            agree = agreement(setting, entries, Path(folder))
            for _ in range(setting.repeats):
                for name, entry in list(entries.items()):
                    try:
                        entry.ask()
                    except (Died, BrokenPipeError) as error:
                        print(f"{name} {error}", flush=True)
                        entries.pop(name)
        finally:
            for entry in entries.values():
                entry.process.kill()
                entry.process.wait()
    return entries, agree


def table(setting: Setting, entries: dict[str, Entry], agree: str, floors: dict[str, float]) -> str:
    base = next(iter(entries.values()))
    subsets = {constrained(name) for name in entries}
    floor_of_all = f", with all {floors['all']:.3g} s" if "all" in subsets else ""
    lines = [
        f"\n### {setting.network}, K = {setting.steps}\n",
        f"{setting.repeats} interleaved repeats; {agree}; floor {floors['']:.3g} s, at each convolution's "
        f"own speed {floors['own speed']:.3g} s{floor_of_all}.\n",
        "| | median, s | least to most | time over first row's | peak, MB | peak over first row's "
        "| peak after the first call, MB | first call, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, entry in entries.items():
        lines.append(
            f"| {name} | {entry.median:.3f} | {min(entry.seconds):.3f} to {max(entry.seconds):.3f} "
            f"| {entry.median / base.median:.2f} | {entry.peak:.0f} "
            f"| {entry.peak / base.peak:.2f} | {entry.megabytes:.0f} | {entry.first:.1f} |"
        )
    lines += [f"| {name} | did not finish |" for name in setting.contenders if name not in entries]
    return "\n".join(lines) + "\n"
