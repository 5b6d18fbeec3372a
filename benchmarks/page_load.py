"""The page under load: 50 clients at once for a minute, then 1,000 requests, against a real server process.

    python benchmarks/page_load.py --out benchmarks/page_load.md

A client is somebody who never stops to think: it sends a drawing (280 x 280 pixels) to be seen, adds what
comes back as a query to its own random 5-way 5-shot episode, of which it leaves out another example each
time, so that nothing is known beforehand, and asks one of the two shipped models for all ten steps and the
choice of auto. Every third time it goes away after the first step, as the page does when another example is
drawn meanwhile; at the end of the minute all go. Whatever is not as the page expects counts as an error:
another status, a line that says error, too few steps, a line that cannot be read. The clients run on the same
cores as the server.

The 1,000 requests are of all kinds, four at a time; resident memory is read after every hundred.
"""

from __future__ import annotations

import os
import platform
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import tyro

from page_clients import STEPS, Server, load, one_of_many, serving, warm_up


@dataclass(frozen=True, kw_only=True)
class Settings:
    clients: int = 50
    """At once."""
    seconds: float = 60.0
    """After which all clients go."""
    requests: int = 1000
    """Of all kinds, after the load."""
    part: Literal["all", "load", "requests"] = "all"
    """What to measure; of the other part the file keeps what it has."""
    out: Path | None = None
    """Markdown file for the result."""


def many(server: Server, settings: Settings) -> list[float]:
    """Resident memory before the first and after every hundred."""
    found = [server.memory()]
    with ThreadPoolExecutor(4) as threads:
        for start in range(0, settings.requests, 100):
            numbers = range(start, min(start + 100, settings.requests))
            list(threads.map(lambda number: one_of_many(server, number), numbers))
            found.append(server.memory())
    return found


def shown(name: str, values: list[float]) -> str:
    if not values:
        return f"| {name} | 0 | | | |"
    marks = np.percentile(values, [50, 95, 100])
    return f"| {name} | {len(values)} | {' | '.join(f'{mark:.2f}' for mark in marks)} |"


def cpu() -> str:
    path = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", path.read_text()) if path.is_file() else []
    return names[0] if names else platform.machine()


def machine() -> str:
    cores, python = len(os.sched_getaffinity(0)), platform.python_version()
    return f"{cores} logical cores of {cpu()}, Python {python}, torch {torch.__version__}."


def introduction() -> str:
    return f"""# The page under load

Written by `python benchmarks/page_load.py --out benchmarks/page_load.md`, whose first lines say what a client
does.
{machine()}
"""


def measure_load(server: Server, settings: Settings) -> str:
    start = server.memory()
    warm_up(server)
    warm = server.memory()
    tally, seconds = load(server, settings.clients, settings.seconds), settings.seconds
    for line in tally.errors[:20]:
        print(line)
    table = [
        "| seconds until | answers | median | 95 % | slowest |",
        "|---|---|---|---|---|",
        shown("a drawing is seen", tally.seen),
        shown("the first step", tally.first_step),
        shown(f"the last of {STEPS} steps", tally.all_steps),
        shown("auto has chosen", tally.auto),
    ]
    words = (
        f"{settings.clients} clients at once for {seconds:.0f} s: **{len(tally.errors)} errors**, "
        f"{tally.steps / seconds:.1f} inner steps and {len(tally.all_steps) / seconds:.2f} adaptations of "
        f"{STEPS} steps a second; {tally.left_early} went away on purpose after their first step; "
        f"{tally.told_to_wait} lines told a client its place. Resident memory of the server: {start:.0f} MiB "
        f"at its start, {warm:.0f} MiB after four requests, {server.memory():.0f} MiB after the load."
    )
    return "\n".join([words, "", *table, ""])


def measure_requests(server: Server, settings: Settings) -> str:
    warm_up(server)
    row = ", ".join(f"{value:.0f}" for value in many(server, settings))
    return (
        f"Resident memory of the server before {settings.requests} requests and after every 100: {row} MiB.\n"
    )


PARTS = {"load": ("At once", measure_load), "requests": ("One after the other", measure_requests)}


def kept(out: Path | None) -> dict[str, str]:
    """The sections that the file has."""
    text = out.read_text() if out is not None and out.is_file() else ""
    sections = [section.partition("\n\n") for section in text.split("\n## ")[1:]]
    return {title: f"{content.strip()}\n" for title, _, content in sections}


def main(settings: Settings) -> None:
    sections = kept(settings.out)
    for part, (title, measure) in PARTS.items():
        if settings.part in ("all", part):
            with serving() as server:
                sections[title] = measure(server, settings)
            print(sections[title], flush=True)
            if settings.out is not None:
                known = [f"## {name}\n\n{sections[name]}" for name, _ in PARTS.values() if name in sections]
                settings.out.write_text("\n".join([introduction(), *known]))


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
