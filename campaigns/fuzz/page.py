"""Requests to the page, damaged: each gets an answer without an internal error, and the page runs on."""

from __future__ import annotations

import base64
import socket
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import quote

from campaigns.fuzz.case import Case, Sandbox
from campaigns.fuzz.mutate import NASTY_TEXT, changed_json, damaged, json_bytes
from campaigns.fuzz.pictures import png

REQUESTS = 6
SIZE = 16
REFUSALS = range(400, 432)
BOUNDARY = "boundary"


@dataclass(frozen=True)
class Sent:
    path: str
    content: bytes
    whole: bool
    """Whether it is HTTP from its first to its last byte, so that there must be an answer."""


def page(rng: Random, sandbox: Sandbox) -> Case:
    requests = [_request(rng) for _ in range(REQUESTS)]
    what = "; ".join(f"{each.path} {len(each.content)} bytes" for each in requests)
    return Case(what=what, call=lambda: _ask_all(sandbox, requests), expected="good", writes=("cache",))


def _ask_all(sandbox: Sandbox, requests: list[Sent]) -> int:
    from firststep.page import Address, Limits, Page, bound, in_background, load_models

    said: list[str] = []
    models = load_models([str(sandbox.stock.run)])
    page = Page(models, sandbox.stock.folder, Limits(upload_bytes=2**20, seconds_to_upload=1.0), said.append)
    with bound("127.0.0.1", 0) as listening:
        address = Address.of("127.0.0.1", listening.getsockname()[1])
        with in_background(page, listening, address):
            for sent in requests:
                _check(_answer(address.port, sent), sent, str(sandbox.stock.folder))
            good = Sent("/api/models", _http("GET", "/api/models", b"", "application/json", 0), whole=True)
            assert b" 200 " in _answer(address.port, good).partition(b"\n")[0], "the page is gone"
    assert not said, said
    return len(requests)


def _check(answer: bytes, sent: Sent, hidden: str) -> None:
    if not answer:
        assert not sent.whole, f"{sent.path} is not answered"
        return
    status = int(answer.split(None, 2)[1])
    assert status == 200 or status in REFUSALS, f"{sent.path} is answered by {status}"
    assert hidden.encode() not in answer, f"{sent.path} tells a path"
    assert b"internal error" not in answer, f"{sent.path} fails"
    assert b"NaN" not in answer, f"{sent.path} has a NaN"


def _answer(port: int, sent: Sent) -> bytes:
    """Return the answer, or nothing: the server may wait for the rest of a broken request, or hang up."""
    parts = []
    with socket.create_connection(("127.0.0.1", port), timeout=45 if sent.whole else 1.5) as connection:
        try:
            connection.sendall(sent.content.replace(b"PORT", str(port).encode()))
            while part := connection.recv(65536):
                parts.append(part)
        except (TimeoutError, ConnectionError):
            assert not sent.whole, f"{sent.path} is not answered to its end"
            return b""
    return b"".join(parts)


def _request(rng: Random) -> Sent:
    usual = ["/api/adapt"] * 3 + ["/api/see"] * 2
    path = rng.choice([*usual, "/api/episode", "/api/runs/", "/static/", "/api/export"])
    wrong_length = 0 if rng.random() < 0.95 else rng.choice([-1, 1, 10**12])
    if path in ("/api/runs/", "/static/"):
        name = rng.choice(["../run.json", "%2e%2e/run", "%00", "run", "a" * 3000, "%ff", *NASTY_TEXT])
        request = _http(
            "GET", path + quote(name, safe="/%", errors="replace"), b"", "text/plain", wrong_length
        )
    elif path == "/api/see":
        request = _http("POST", path, _form(rng), f"multipart/form-data; boundary={BOUNDARY}", wrong_length)
    else:
        body = json_bytes(rng, changed_json(rng, _good(rng, path)))
        request = _http("POST", path, body, "application/json", wrong_length)
    if rng.random() < 0.2:
        return Sent(path, damaged(rng, request), whole=False)
    return Sent(path, request, whole=wrong_length == 0)


def _http(method: str, path: str, body: bytes, kind: str, wrong_length: int) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nConnection: close\r\n"
    head += f"Content-Type: {kind}\r\nContent-Length: {len(body) + wrong_length}\r\n\r\n"
    return head.encode("latin-1") + body


def _good(rng: Random, path: str) -> dict[str, Any]:
    if path == "/api/episode":
        return {"model": "run", "ways": 2, "shots": 1, "queries": 1, "seed": rng.randrange(100)}
    classes = [{"name": name, "examples": [_picture(rng), _picture(rng)]} for name in "ab"]
    if path == "/api/export":
        return {"model": "run", "classes": classes, "steps": 1, "format": "safetensors"}
    queries = [{"image": _picture(rng), "label": rng.choice([0, 1, None])}]
    return {"model": "run", "classes": classes, "queries": queries, "steps": 1}


def _picture(rng: Random) -> str:
    content = png(rng, SIZE)
    return base64.b64encode(damaged(rng, content) if rng.random() < 0.1 else content).decode()


def _form(rng: Random) -> bytes:
    parts = []
    for _ in range(rng.randrange(4)):
        name = rng.choice(["a.png", *NASTY_TEXT]).encode("utf-8", "surrogatepass")
        field = rng.choice(["file", "file", "other"]).encode()
        head = b'Content-Disposition: form-data; name="' + field + b'"; filename="' + name + b'"'
        content = png(rng, SIZE)
        parts += [f"--{BOUNDARY}\r\n".encode(), head, b"\r\n\r\n", damaged(rng, content), b"\r\n"]
    return b"".join([*parts, f"--{BOUNDARY}--\r\n".encode()])
