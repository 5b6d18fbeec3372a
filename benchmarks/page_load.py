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

import contextlib
import http.client
import io
import itertools
import json
import os
import platform
import random
import re
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from PIL import Image, ImageDraw

MODELS = ("builtin:glyphs-maml", "builtin:glyphs-conditioned")
KEY = "32-grey-ink"
STEPS = 10
BOUNDARY = "firststep-load"


@dataclass(frozen=True, kw_only=True)
class Settings:
    clients: int = 50
    """At once."""
    seconds: float = 60.0
    """After which all clients go."""
    requests: int = 1000
    """Of all kinds, after the load."""
    out: Path | None = None
    """Markdown file for the result."""


@dataclass
class Tally:
    """What happened, from all clients."""

    seen: list[float] = field(default_factory=list)
    first_step: list[float] = field(default_factory=list)
    all_steps: list[float] = field(default_factory=list)
    auto: list[float] = field(default_factory=list)
    left_early: int = 0
    steps: int = 0
    told_to_wait: int = 0
    errors: list[str] = field(default_factory=list)


class Server:
    def __init__(self) -> None:
        command = [sys.executable, "-m", "firststep", "page", "--no-open", "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        found = re.match(r"http://127.0.0.1:(\d+)/", self.process.stdout.readline())
        assert found
        self.port = int(found[1])
        self._connected: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def memory(self) -> float:
        """Resident, in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found
        return int(found[1]) / 1024

    def ask(self, path: str, body: bytes, kind: str = "application/json") -> http.client.HTTPResponse:
        """The connection is closed when the answer is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.connect()
        self._connected.add(connection.sock)
        connection.request("POST", path, body, {"Content-Type": kind, "Connection": "close"})
        return connection.getresponse()

    def cut_off(self) -> None:
        """All clients of this process go away."""
        for each in list(self._connected):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def json(self, path: str, value: Any) -> Any:
        with self.ask(path, json.dumps(value).encode()) as answer:
            content = json.loads(answer.read())
        assert answer.status == 200, content
        return content

    def see(self, picture: bytes) -> str:
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="drawn.png"\r\n\r\n'
        body = head.encode() + picture + f"\r\n--{BOUNDARY}--\r\n".encode()
        with self.ask("/api/see", body, f"multipart/form-data; boundary={BOUNDARY}") as answer:
            (result,) = json.loads(answer.read())["results"]
        found: str = result["seen"][KEY]
        return found


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(60)


def drawing(chance: random.Random) -> bytes:
    """Three strokes of a pen on white paper, as the browser sends them."""
    image = Image.new("L", (280, 280), 255)
    pen = ImageDraw.Draw(image)
    for _ in range(3):
        pen.line([(chance.randrange(20, 260), chance.randrange(20, 260)) for _ in range(3)], fill=0, width=14)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def lesson(episode: Any, query: str, model: str, chance: random.Random, steps: int) -> dict[str, Any]:
    classes = [
        {"name": each["name"], "examples": [example[KEY] for example in each["examples"]]}
        for each in episode["classes"]
    ]
    left_out = chance.randrange(len(classes))
    if len(classes[left_out]["examples"]) > 1:
        classes[left_out]["examples"].pop(chance.randrange(len(classes[left_out]["examples"])))
    queries = [
        {"image": query},
        *({"image": each["image"][KEY], "label": each["label"]} for each in episode["queries"]),
    ]
    return {"model": model, "classes": classes, "queries": queries, "steps": steps}


def adapt(server: Server, asked: dict[str, Any], tally: Tally, leave_early: bool) -> None:
    began = time.monotonic()
    with server.ask("/api/adapt", json.dumps(asked).encode()) as answer:
        if answer.status != 200:
            raise RuntimeError(f"status {answer.status}: {answer.read()!r}")
        taken = 0
        for line in answer:
            event = json.loads(line)
            since = time.monotonic() - began
            if event["type"] == "waiting":
                tally.told_to_wait += 1
            elif event["type"] == "step":
                assert event["step"] == taken
                assert len(event["probabilities"]) == len(asked["queries"])
                taken += 1
                tally.steps += 1
                if taken == 1:
                    tally.first_step.append(since)
                    if leave_early:
                        tally.left_early += 1
                        return
                if taken == asked["steps"] + 1:
                    tally.all_steps.append(since)
            elif event["type"] == "auto":
                tally.auto.append(since)
            elif event["type"] == "done":
                assert taken == asked["steps"] + 1
                return
            elif event["type"] != "start":
                raise RuntimeError(f"{event}")
    raise RuntimeError(f"the answer ended after {taken} steps")


def client(server: Server, number: int, until: float, tally: Tally, lock: threading.Lock) -> None:
    chance = random.Random(number)
    asked = {"model": MODELS[0], "ways": 5, "shots": 5, "queries": 1, "seed": number}
    episode = server.json("/api/episode", asked)
    own = Tally()
    for turn in itertools.count(number):
        if time.monotonic() >= until:
            break
        try:
            began = time.monotonic()
            query = server.see(drawing(chance))
            own.seen.append(time.monotonic() - began)
            model = MODELS[turn % 2]
            adapt(server, lesson(episode, query, model, chance, STEPS), own, turn % 3 == 0)
        except Exception as error:
            if time.monotonic() < until:  # else it was cut off
                own.errors.append(f"{type(error).__name__}: {error}")
    with lock:
        for name, value in vars(own).items():
            setattr(tally, name, getattr(tally, name) + value)


def load(server: Server, settings: Settings) -> tuple[Tally, float]:
    tally, lock = Tally(), threading.Lock()
    began = time.monotonic()
    threads = [
        threading.Thread(target=client, args=(server, number, began + settings.seconds, tally, lock))
        for number in range(settings.clients)
    ]
    for thread in threads:
        thread.start()
    time.sleep(settings.seconds)
    server.cut_off()
    for thread in threads:
        thread.join()
    return tally, settings.seconds


def one_of_many(server: Server, number: int) -> None:
    """Requests of all kinds, small ones: a thousand of them show what is kept of each."""
    chance = random.Random(number)
    kind = number % 4
    if kind == 0:
        server.see(drawing(chance))
        return
    asked = {"model": MODELS[number % 2], "ways": 2, "shots": 2, "queries": 1, "seed": number}
    episode = server.json("/api/episode", asked)
    if kind < 3:
        query = server.see(drawing(chance))
        adapt(server, lesson(episode, query, MODELS[number % 2], chance, 1), Tally(), kind == 2)


def many(server: Server, settings: Settings) -> list[float]:
    """Resident memory before the first and after every hundred."""
    found = [server.memory()]
    with ThreadPoolExecutor(4) as threads:
        for start in range(0, settings.requests, 100):
            numbers = range(start, min(start + 100, settings.requests))
            list(threads.map(lambda number: one_of_many(server, number), numbers))
            found.append(server.memory())
    return found


def warm_up(server: Server) -> None:
    """Both models at both places in the line, with as many pictures as the load has."""

    def ask(number: int) -> None:
        chance = random.Random(number)
        asked = {"model": MODELS[0], "ways": 5, "shots": 5, "queries": 1, "seed": number}
        one = lesson(
            server.json("/api/episode", asked), server.see(drawing(chance)), MODELS[number % 2], chance, 1
        )
        adapt(server, one, Tally(), leave_early=False)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(ask, range(4)))


def shown(name: str, values: list[float]) -> str:
    if not values:
        return f"| {name} | 0 | | | |"
    marks = np.percentile(values, [50, 95, 100])
    return f"| {name} | {len(values)} | {' | '.join(f'{mark:.2f}' for mark in marks)} |"


def cpu() -> str:
    path = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", path.read_text()) if path.is_file() else []
    return names[0] if names else platform.machine()


def written(
    settings: Settings, tally: Tally, seconds: float, memory: dict[str, float], flat: list[float]
) -> str:
    cores = len(os.sched_getaffinity(0))
    lines = [
        "# The page under load",
        "",
        "Written by `python benchmarks/page_load.py --out benchmarks/page_load.md`, whose first lines say",
        "what a client does.",
        f"{cores} logical cores of {cpu()}, Python {platform.python_version()}, torch {torch.__version__}.",
        "",
        f"{settings.clients} clients at once for {seconds:.0f} s: **{len(tally.errors)} errors**, "
        f"{tally.steps / seconds:.1f} inner steps and {len(tally.all_steps) / seconds:.2f} adaptations of "
        f"{STEPS} steps a second; {tally.left_early} went away on purpose after their first step; "
        f"{tally.told_to_wait} lines told a client its place.",
        "",
        "| seconds until | answers | median | 95 % | slowest |",
        "|---|---|---|---|---|",
        shown("a drawing is seen", tally.seen),
        shown("the first step", tally.first_step),
        shown(f"the last of {STEPS} steps", tally.all_steps),
        shown("auto has chosen", tally.auto),
        "",
        f"Resident memory of the server: {memory['start']:.0f} MiB at its start, {memory['warm']:.0f} MiB "
        f"after the first few requests, {memory['load']:.0f} MiB after the load.",
    ]
    if len(flat) > 1:
        row = ", ".join(f"{value:.0f}" for value in flat)
        lines.append(f"Then, after every hundred of {settings.requests} requests of all kinds: {row} MiB.")
    return "\n".join([*lines, ""])


def main(settings: Settings) -> None:
    with serving() as server:
        memory = {"start": server.memory()}
        warm_up(server)
        memory["warm"] = server.memory()
        tally, seconds = load(server, settings)
        memory["load"] = server.memory()
        flat = many(server, settings)
    text = written(settings, tally, seconds, memory, flat)
    print(text)
    for line in tally.errors[:20]:
        print(line)
    if settings.out is not None:
        settings.out.write_text(text)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__))
