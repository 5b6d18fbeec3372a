"""What a stored result was made with, read from the words in which it says how it was made."""

from __future__ import annotations

import re
from dataclasses import dataclass

from firststep.backbones import BACKBONES

UNITS = (("days", 86_400), ("h", 3_600), ("min", 60))


@dataclass(frozen=True)
class Budget:
    """Each in a few words; empty where the result does not say it."""

    data: str
    networks: str
    images: str
    training: str
    """Meta-updates x tasks."""
    rate: str
    """Inner rate α."""
    test: str
    time: str

    def __str__(self) -> str:
        parts = (self.data, self.networks, self.images, self.training, self.rate, self.test, self.time)
        return "; ".join(part for part in parts if part)


def read_budget(facts: dict[str, str]) -> Budget:
    """From the facts of a result, of this version or of an earlier one."""
    data = [part.split()[0] for part in facts.get("data fingerprint", "").split("; ") if part.split()]
    # Names of runs have the network in them.
    networks = [b for name, b in BACKBONES.items() if f"-{name}-" in facts.get("training time", "")]
    filters = _setting(facts, "filters") if any(network.has_filters for network in networks) else ""
    size = _setting(facts, "image_size")
    updates, tasks = _setting(facts, "updates"), _setting(facts, "meta_batch")
    rates = r"\brate(?: by the number of features: |=)([\d.e-]+(?:, [\d.e-]+)*)"
    rate = re.search(rates, facts.get("settings", ""))
    time = re.match(r"(\d+) s in all for (\d+) of \d+ runs", facts.get("training time", ""))
    tested = re.match(r"\d+ \w+ episodes", facts.get("test", ""))
    return Budget(
        data=", ".join(dict.fromkeys(data)),
        networks=", ".join(
            [*(network.title for network in networks), *([f"{filters} filters"] if filters else [])]
        ),
        images=f"{size} px" if size else "",
        training=f"{_count(updates)} updates × {tasks or '4'} tasks" if updates else "",
        rate=f"α {rate[1]}" if rate else "",
        test=tested[0] if tested else "",
        time=f"{_duration(int(time[1]))} for {time[2]} runs" if time else "",
    )


def _setting(facts: dict[str, str], name: str) -> str:
    """What all runs have in common, or else what the scale says."""
    found = re.search(rf"\b{name}=(\d+)", facts.get("settings", ""))
    words = name.replace("_", " ")
    found = found or re.search(rf"[:,] {words} (\d+)", facts.get("scale", ""))
    return found[1] if found else ""


def _count(number: str) -> str:
    return f"{int(number):,}"


def _duration(seconds: int) -> str:
    for unit, size in UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds} s"
