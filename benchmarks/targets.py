"""Targets of the engine, as ratios within one run, and whether this run reaches them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from contenders import FOUR, FREED_KEPT, ROUNDED
from meta_gradient import JAX, PEERS, Measured


class Target(NamedTuple):
    what: str
    goal: str
    found: float
    met: bool


def at_least(what: str, goal: float, found: float, unit: str = "x") -> Target:
    return Target(what, f"at least {goal:g} {unit}", found, found >= goal)


def at_most(what: str, goal: float, found: float, unit: str = "x") -> Target:
    return Target(what, f"at most {goal:.3g} {unit}", found, found <= goal)


def targets(measured: list[Measured]) -> Iterator[Target]:
    """Return the targets that this run can judge."""
    for one in measured:
        name, seconds = f"{one.network}, K = {one.steps}", one.seconds
        peers = [peer for peer in (*PEERS, *JAX) if peer in seconds]
        if "firststep" in seconds and peers:
            yield from _beside_peers(one, name, min(peers, key=seconds.__getitem__))
        if {"firststep", "firststep + cls"} <= seconds.keys():
            ratio = seconds["firststep + cls"] / seconds["firststep"]
            yield at_most(f"{name}: time with cls over time without", 1.03, ratio)
        if {"firststep", "firststep + emb"} <= seconds.keys():
            ratio = seconds["firststep + emb"] / seconds["firststep"]
            yield at_most(f"{name}: time with emb over time without", 1.5, ratio)
        loop = "plain autograd, loop + all"
        if {"firststep + all", loop} <= seconds.keys():
            ratio = seconds[loop] / seconds["firststep + all"]
            yield at_least(f"{name}: with all, times faster than the loop over samples", 4.5, ratio)
        kept, none = "firststep eager", "firststep eager, nothing kept"
        if {kept, none, "plain autograd"} <= seconds.keys():
            plain = seconds["plain autograd"]
            yield at_most(f"{name}: eager, all kept, over plain autograd", 1, seconds[kept] / plain)
            yield at_most(f"{name}: eager, nothing kept, over plain autograd", 1.5, seconds[none] / plain)
    yield from _by_steps(measured)


def _beside_peers(one: Measured, name: str, peer: str) -> Iterator[Target]:
    faster = one.seconds[peer] / one.seconds["firststep"]
    smaller = one.peak["firststep"] / one.peak[peer]
    if one.steps in FASTER.get(one.network, {}):
        goal = FASTER[one.network][one.steps]
        yield at_least(f"{name}: times faster than the fastest peer ({peer})", goal, faster)
    if one.network.startswith("ResNet") and one.steps in (5, 20):
        yield at_most(f"{name}: peak over that of {peer}", {5: 0.5, 20: 0.25}[one.steps], smaller)
    if one.network in TOGETHER and FOUR in one.seconds:
        ratio = one.seconds[peer] / one.seconds[FOUR]
        yield at_least(f"{name}: of four tasks, times faster than the fastest peer ({peer})", 4, ratio)
    if one.network == MAIN and one.steps == 5:
        yield at_most(f"{name}: peak over that of {peer}", 0.5, smaller)
        if ROUNDED in one.peak:
            ratio = one.peak[ROUNDED] / one.peak[peer]
            yield at_most(f"{name}: peak saved as bfloat16 over that of {peer}", 0.5, ratio)
        yield at_most(f"{name}: first call, nothing compiled before", 45, one.first["firststep"], "s")
        again = f"firststep{FREED_KEPT}"  # another process, later
        if again in one.first:
            yield at_most(f"{name}: first call, compiled before", 5, one.first[again], "s")
    if one.network == MAIN and one.steps == 20:
        yield at_most(f"{name}: peak over that of {peer}", 1 / 6, smaller)
        if ROUNDED in one.peak:
            ratio = one.peak[ROUNDED] / one.peak[peer]
            yield at_most(f"{name}: peak saved as bfloat16 over that of {peer}", 1 / 6, ratio)


def _by_steps(measured: list[Measured]) -> Iterator[Target]:
    for few in measured:
        for many in measured:
            same = (few.network, few.code) == (many.network, many.code) and (few.steps, many.steps) == (5, 20)
            if same and few.contains_peers() and many.contains_peers():
                time = many.seconds["firststep"] / few.seconds["firststep"]
                peak = many.later_peak["firststep"] / few.later_peak["firststep"]
                yield at_most(f"{few.network}: time of K = 20 over that of K = 5", 4.2, time)
                yield at_most(
                    f"{few.network}: peak of K = 20 over that of K = 5, compiling apart", 1.15, peak
                )


def floors(found: dict[str, dict[str, float]]) -> Iterator[Target]:
    """Return the targets of :mod:`over_the_floor` by case: medians of ratios measured in turns."""
    for case, ratios in found.items():
        if case in OVER_THE_FLOOR:
            yield at_most(f"{case}: time over the floor", OVER_THE_FLOOR[case], ratios["median"])


MAIN = "Conv4-64, 84 px"
TOGETHER = ("Conv4-32, 28 px",)
FASTER = {
    "Conv4-64, 84 px": {5: 3.0},
    "Conv4-64, 32 px": {5: 3.0},
    "Conv4-32, 28 px": {5: 3.0},
    "ResNet10, 84 px": {5: 2.0, 20: 2.0},
    "ResNet18, 84 px": {5: 2.0},
}
"""Network: {inner steps: times}."""
OVER_THE_FLOOR = {
    f"{MAIN}, firststep": 1.5,
    f"{MAIN}, firststep{FREED_KEPT}": 1.5,
    f"Conv4-32, 28 px, {FOUR}{FREED_KEPT}": 2.5,
    f"Conv4-32, 28 px, firststep + all{FREED_KEPT}": 1.6,
    f"Conv4-64, 32 px, firststep + all{FREED_KEPT}": 1.6,
}
"""Case: times."""


def table(found: list[Target]) -> str:
    lines = ["\n## Targets\n", "| | goal | found | |", "|---|---|---|---|"]
    for target in found:
        verdict = "met" if target.met else "**not met**"
        lines.append(f"| {target.what} | {target.goal} | {target.found:.3g} | {verdict} |")
    return "\n".join(lines) + "\n"
