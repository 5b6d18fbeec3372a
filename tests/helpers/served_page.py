"""A page that is served within the test's process, and clients of it that speak plain HTTP."""

from __future__ import annotations

import http.client
import io
import json
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from firststep.page import Address, Limits, Models, Page, bound, in_background

BOUNDARY = "xxfirststepxx"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        line: str = self.json()["error"]
        assert "\n" not in line
        return line


@dataclass(frozen=True)
class ServedPage:
    address: Address
    page: Page

    @property
    def port(self) -> int:
        return self.address.port

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(
        self,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        method: str | None = None,
    ) -> Answer:
        """Send JSON unless the body is bytes."""
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"} if body is not None else {}
        connection = self.connect()
        try:
            connection.request(
                method or ("GET" if body is None else "POST"), path, content, {**kind, **(headers or {})}
            )
            found = connection.getresponse()
            return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())
        finally:
            connection.close()

    def see(self, files: Sequence[tuple[str, bytes]], field: str = "file") -> Answer:
        return self.ask(
            "/api/see",
            form(files, field),
            headers={"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"},
        )

    def adapt(self, body: Any) -> list[dict[str, Any]]:
        """Return all events of an adaptation."""
        answer = self.ask("/api/adapt", body)
        assert answer.status == 200, answer.body
        return [json.loads(line) for line in answer.body.splitlines()]

    def raw(self, request: bytes) -> bytes:
        """Return the first line of the answer to bytes that no client library would send."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=240) as connection:
            connection.sendall(request)
            with connection.makefile("rb") as answer:
                return answer.readline()


@contextmanager
def served(
    models: Models,
    runs: Path,
    *,
    host: str = "127.0.0.1",
    limits: Limits | None = None,
    report: Callable[[str], None] = print,
) -> Iterator[ServedPage]:
    page = Page(models, runs, limits, report)
    with bound(host, 0) as listening:
        address = Address.of(host, listening.getsockname()[1])
        with in_background(page, listening, address):
            yield ServedPage(address, page)


def form(files: Sequence[tuple[str, bytes]], field: str = "file") -> bytes:
    parts = []
    for name, content in files:
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n\r\n'
        parts += [head.encode(), content, b"\r\n"]
    return b"".join([*parts, f"--{BOUNDARY}--\r\n".encode()])


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def lesson_of(episode: Any, model: str, steps: int = 3) -> dict[str, Any]:
    """Return what the browser would ask after drawing an episode."""
    (key,) = episode["queries"][0]["image"]
    return {
        "model": model,
        "classes": [
            {"name": each["name"], "examples": [example[key] for example in each["examples"]]}
            for each in episode["classes"]
        ],
        "queries": [{"image": each["image"][key], "label": each["label"]} for each in episode["queries"]],
        "steps": steps,
    }
