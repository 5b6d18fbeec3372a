"""Clients of a page that is served by a process of its own: what page_load.py measures with."""

from __future__ import annotations

import contextlib
import http.client
import io
import itertools
import json
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

from PIL import Image, ImageDraw

MODELS = ("builtin:glyphs-maml", "builtin:glyphs-conditioned")
KEY = "32-grey-ink"
STEPS = 10
BOUNDARY = "firststep-load"


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


def load(server: Server, clients: int, seconds: float) -> Tally:
    tally, lock = Tally(), threading.Lock()
    began = time.monotonic()
    threads = [
        threading.Thread(target=client, args=(server, number, began + seconds, tally, lock))
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    server.cut_off()
    for thread in threads:
        thread.join()
    return tally


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
