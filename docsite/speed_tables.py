"""The tables of docs/speed.md and docs/engine-notes.md, from the medians in benchmarks/results.json."""

from __future__ import annotations

from typing import Any, NamedTuple

from docsite.results import benchmark, benchmarks, over_the_floor
from firststep.utils.table import Table

PEERS = ("higher", "torchopt", "plain autograd", "plain autograd, torch's batch norm")
JAX = ("JAX, jit", "JAX, jit, scan with remat")
FOUR = "firststep, four tasks, per task"
MAIN = ("Conv4-64, 84 px", 5)
LABELS = {
    "firststep": "firststep, compiled",
    "firststep + cls": "firststep, compiled, with the conditioning loss on `cls`",
    "firststep, freed memory kept": "firststep, compiled, freed memory kept (`firststep train --compile`)",
    "firststep, saved as bfloat16": "firststep, compiled, saved tensors rounded to bfloat16 (not exact)",
    "firststep eager, nothing kept": "firststep, not compiled, nothing saved",
    "firststep eager": "firststep, not compiled, everything saved",
    "plain autograd": "plain autograd in one graph",
    "plain autograd, torch's batch norm": "plain autograd in one graph, torch's batch norm",
    "torchopt": "torchopt",
    "higher": "higher",
    "torchopt, freed memory kept": "torchopt, freed memory kept",
    **{name: name for name in JAX},
}


class Comparison(NamedTuple):
    title: str
    seconds: float
    times_as_fast: float
    memory_share: float
    peer: str


def fastest_peer(medians: dict[str, Any]) -> str:
    seconds: dict[str, float] = medians["seconds"]
    return min((name for name in (*PEERS, *JAX) if name in seconds), key=seconds.__getitem__)


def seconds_of(value: float) -> str:
    return f"{value:#.3g}"


def sentence() -> str:
    """Return short sentences about time and memory, against the fastest of the peers."""
    parts = ["One exact meta-gradient of Conv4-64 at 84 px, 5-way 5-shot, on two CPU cores with AVX-512:"]
    for steps in (5, 20):
        medians = benchmark(MAIN[0], steps, "firststep", *PEERS[2:])
        seconds, peak, peer = medians["seconds"], medians["peak"], fastest_peer(medians)
        parts.append(
            f"{steps} inner steps take {seconds['firststep']:.1f} s and {peak['firststep'] / 1000:.1f} GB "
            f"({peer}: {seconds[peer]:.1f} s and {peak[peer] / 1000:.1f} GB)."
        )
    return " ".join(parts)


def main_setting() -> str:
    medians = benchmark(*MAIN, "firststep", *PEERS)
    table = Table(["", "s per task", "peak, MB"])
    for name, label in LABELS.items():
        if name in medians["seconds"]:
            title = f"{label} (fastest peer)" if name == fastest_peer(medians) else label
            table.add_row(title, seconds_of(medians["seconds"][name]), f"{medians['peak'][name]:.0f}")
    return table.to_markdown()


def compared() -> list[Comparison]:
    """Return every setting that was measured beside peers, the main one first."""
    found: dict[str, Comparison] = {}
    for medians in benchmarks():
        seconds, peak = medians["seconds"], medians["peak"]
        title = f"{medians['network']}, {medians['steps']} steps"
        if title in found or "firststep" not in seconds or not set(PEERS) & set(seconds):
            continue
        peer = fastest_peer(medians)
        ratios = seconds[peer] / seconds["firststep"], peak["firststep"] / peak[peer]
        found[title] = Comparison(title, seconds["firststep"], *ratios, peer)
    main = f"{MAIN[0]}, {MAIN[1]} steps"
    return sorted(found.values(), key=lambda one: one.title != main)


def other_settings() -> str:
    """Return a line per setting, against its fastest peer."""
    table = Table(["", "s per task", "times as fast", "peak over the peer's", "fastest peer"])
    for one in compared():
        table.add_row(
            one.title,
            seconds_of(one.seconds),
            f"{one.times_as_fast:.1f}",
            f"{one.memory_share:.2f}",
            one.peer,
        )
    return table.to_markdown()


def subsets() -> str:
    """Return the cost of conditioning on more than the classifier."""
    table = Table(["", "s per task", "over plain", "loop over samples, s"])
    for medians in benchmarks():
        seconds = medians["seconds"]
        for subset in ("emb", "all"):
            ours, loop = f"firststep + {subset}", f"plain autograd, loop + {subset}"
            if {"firststep", ours, loop} <= set(seconds):
                table.add_row(
                    f"`{subset}`, {medians['network']}",
                    seconds_of(seconds[ours]),
                    f"{seconds[ours] / seconds['firststep']:.2g}",
                    seconds_of(seconds[loop]),
                )
    return table.to_markdown()


def bounds() -> str:
    """Return our time and the fastest peer's over the time of the convolutions alone.

    They are ratios of times measured in turns, because the machine's speed changes by the minute.
    """
    kept = ", freed memory kept"
    table = Table(
        [
            "5 steps",
            "firststep over the floor",
            "own speed over the floor",
            "fastest peer over own speed",
            "times as fast",
        ]
    )
    ratios, seen = over_the_floor(), set()
    for medians in benchmarks():
        network, seconds = medians["network"], medians["seconds"]
        ours = ratios.get(f"{network}, firststep{kept}")
        if (
            network in seen
            or medians["steps"] != 5
            or not {"firststep", *PEERS[2:]} <= set(seconds)
            or not ours
        ):
            continue
        seen.add(network)
        peer = seconds[fastest_peer(medians)]
        own = medians["own_floor"] / medians["floor"]
        four = ratios.get(f"{network}, {FOUR}{kept}")
        freed = f"firststep{kept}"
        over_peer = peer / seconds[freed if freed in seconds else "firststep"]
        table.add_row(
            network,
            f"{ours:.2f}" + (f" ({four:.2f} four tasks)" if four else ""),
            f"{own:.2f}",
            f"{over_peer * ours / own:.1f}",
            f"{peer / seconds['firststep']:.1f}"
            + (f" ({peer / seconds[FOUR]:.1f} four tasks)" if FOUR in seconds else ""),
        )
    return table.to_markdown()
