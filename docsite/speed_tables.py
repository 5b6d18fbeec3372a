"""The tables of docs/speed.md, from the medians in benchmarks/results.json."""

from __future__ import annotations

from typing import Any

from docsite.results import benchmark, benchmarks, over_the_floor
from firststep.utils.table import Table

PEERS = ("higher", "torchopt", "plain autograd", "plain autograd, torch's batch norm")
FOUR = "firststep, four tasks, per task"
MAIN = ("Conv4-64, 84 px", 5)
LABELS = {
    "firststep": "firststep, compiled",
    "firststep + cls": "firststep, compiled, with the conditioning loss on `cls`",
    "firststep, freed memory kept": "firststep, compiled, freed memory kept for good and large pages "
    "(what `firststep train --compile` does)",
    "firststep, saved as bfloat16": "firststep, compiled, what is saved rounded to bfloat16 (not exact)",
    "firststep eager, nothing kept": "firststep, not compiled, nothing kept",
    "firststep eager": "firststep, not compiled, everything kept",
    "plain autograd": "plain autograd in one graph",
    "plain autograd, torch's batch norm": "plain autograd in one graph, torch's own batch norm",
    "torchopt": "torchopt",
    "higher": "higher",
    "torchopt, freed memory kept": "torchopt, freed memory kept for good and large pages",
}


def fastest_peer(medians: dict[str, Any]) -> str:
    seconds: dict[str, float] = medians["seconds"]
    return min((name for name in PEERS if name in seconds), key=seconds.__getitem__)


def seconds_of(value: float) -> str:
    return f"{value:#.3g}"


def sentence() -> str:
    """One sentence about time and memory, against the fastest of the peers."""
    parts = []
    for steps in (5, 20):
        medians = benchmark(MAIN[0], steps, "firststep", *PEERS[2:])
        seconds, peak, peer = medians["seconds"], medians["peak"], fastest_peer(medians)
        parts.append(
            f"with {steps} inner steps {seconds['firststep']:.1f} s and {peak['firststep'] / 1000:.1f} GB "
            f"({peer}: {seconds[peer]:.1f} s and {peak[peer] / 1000:.1f} GB)"
        )
    setting = "One exact meta-gradient of Conv4-64 at 84 px, 5-way 5-shot, takes on two CPU cores"
    return f"{setting} {', and '.join(parts)}."


def main_setting() -> str:
    medians = benchmark(*MAIN, "firststep", *PEERS)
    table = Table(["", "s a task", "peak, MB"])
    for name, label in LABELS.items():
        if name in medians["seconds"]:
            title = f"{label}, the fastest peer here" if name == fastest_peer(medians) else label
            table.add_row(title, seconds_of(medians["seconds"][name]), f"{medians['peak'][name]:.0f}")
    return table.to_markdown()


def other_settings() -> str:
    """Every other setting that was measured beside peers, against the fastest of them."""
    table = Table(["", "s a task", "times as fast", "peak over the peer's", "fastest peer"])
    seen = {MAIN}
    for medians in benchmarks():
        seconds, peak = medians["seconds"], medians["peak"]
        setting = (medians["network"], medians["steps"])
        if setting in seen or "firststep" not in seconds or not set(PEERS) & set(seconds):
            continue
        seen.add(setting)
        peer = fastest_peer(medians)
        steps = f"{medians['steps']} steps" if medians["steps"] > 1 else "1 step"
        table.add_row(
            f"{medians['network']}, {steps}",
            seconds_of(seconds["firststep"]),
            f"{seconds[peer] / seconds['firststep']:.1f}",
            f"{peak['firststep'] / peak[peer]:.2f}",
            peer,
        )
    return table.to_markdown()


def subsets() -> str:
    """What conditioning on more than the classifier costs."""
    table = Table(["", "s a task", "over plain", "loop over samples, s"])
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
    """How near we are to the convolutions' own time, and how far the fastest peer is: what can be gained.

    Ratios of times that were taken in turns: the machine's speed changes by the minute.
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
