"""Strangers are refused: other names, other pages, clients without the token; no path is ever served."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firststep.page import Address, Models, is_loopback
from firststep.page.messages import without_paths
from served_page import ServedPage, served


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("LOCALHOST:{port}", 200),
        ("[::1]:{port}", 200),
        ("evil.example:{port}", 403),
        ("127.0.0.1", 403),
        ("127.0.0.1:1", 403),
        ("localhost.evil.example:{port}", 403),
        ("127.0.0.1:{port}.evil.example", 403),
        ("evil.example#127.0.0.1:{port}", 403),
        ("[::1", 403),
        ("", 403),
    ],
)
def test_the_host_must_be_ours(page: ServedPage, host: str, status: int) -> None:
    name = host.format(port=page.port)
    for path in ("/", "/api/models"):
        line = page.raw(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
        assert int(line.split()[1]) == status


def test_no_host_and_two_hosts_are_refused(page: ServedPage) -> None:
    ours = f"Host: 127.0.0.1:{page.port}\r\n"
    for hosts in ("", ours + "Host: evil.example\r\n"):
        line = page.raw(f"GET /api/models HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n".encode())
        assert int(line.split()[1]) in (400, 403)
    line = page.raw(b"GET /api/models HTTP/1.0\r\n\r\n")
    assert int(line.split()[1]) == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://127.0.0.1:{port}"}, 422),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Origin": "http://localhost:{port}"}, 403),  # another origin than the one that is asked
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 422),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),  # another port of this machine
    ],
)
def test_other_pages_cannot_ask(page: ServedPage, headers: dict[str, str], status: int) -> None:
    given = {name: value.format(port=page.port) for name, value in headers.items()}
    assert page.ask("/api/adapt", {}, headers=given).status == status
    # A link to the page is fine; an image tag with an address of its interface is not.
    if "Sec-Fetch-Site" in headers:
        assert page.ask("/", headers=given).status == 200
        assert page.ask("/api/models", headers=given).status == (200 if status == 422 else 403)


def test_every_answer_has_the_headers(page: ServedPage) -> None:
    for path in ("/", "/api/models", "/nothing", "/api/nothing", "/static/nothing.js"):
        headers = page.ask(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
        assert headers["cache-control"] == ("no-store" if path.startswith("/api/") else "no-cache")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/..%5capp.py",
        "/static/index.html%00.js",
        "/static/",
        "/api/runs/../../",
        "/api/runs/%2e%2e%2f",
        "/api/runs//etc",
    ],
)
def test_a_request_never_names_a_path(page: ServedPage, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nConnection: close\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", page.port), timeout=240) as connection:
        connection.sendall(request)
        with connection.makefile("rb") as stream:
            answer = stream.read()
    assert int(answer.split()[1]) in (404, 422)
    assert b"root:" not in answer
    assert b"import" not in answer


def test_the_files_of_the_page_are_served(page: ServedPage) -> None:
    index = page.ask("/")
    assert index.status == 200
    assert index.headers["content-type"] == "text/html; charset=utf-8"
    assert page.ask("/static/index.html").body == index.body
    assert page.ask("/api/models", method="DELETE").status == 405


def test_no_path_of_the_machine_is_in_any_answer(page: ServedPage, runs_folder: Path) -> None:
    bodies: list[Any] = [{}, {"model": "missing"}, {"model": str(runs_folder)}]
    answers = [page.ask("/api/models"), page.ask("/api/runs"), page.ask("/api/runs/plain")]
    for body in bodies:
        answers += [page.ask(f"/api/{each}", body) for each in ("adapt", "episode", "export")]
    for answer in answers:
        text = answer.body.decode()
        assert str(runs_folder.parent) not in text.replace(f"unknown model '{runs_folder}'", "")
        assert str(Path(__file__).parents[2]) not in text
    listed = page.ask("/api/models").json()["models"]
    assert [model["name"] for model in listed] == ["plain", "shared", "missing"]
    assert listed[2]["error"] == "missing is not a folder; give the folder of a run, or builtin:glyphs"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot read /home/me/my runs/run.json: no", "cannot read my runs/run.json: no"),
        ("/tmp/x/y.onnx was not kept", "y.onnx was not kept"),
        (r"C:\Users\me\run is not a folder", "run is not a folder"),
        ("try 1/2 or and/or", "try 1/2 or and/or"),
        ("unexpected '/etc/passwd'", "unexpected 'passwd'"),
        ("two\nlines", "two lines"),
    ],
)
def test_messages_show_the_last_part_of_paths(text: str, shown: str) -> None:
    assert without_paths(text, ["/home/me/my runs"]) == shown


@pytest.fixture(scope="module")
def guarded(models: Models, runs_folder: Path) -> Iterator[ServedPage]:
    with served(models, runs_folder, host="0.0.0.0") as found:
        yield found


def test_to_the_network_nothing_is_served_without_the_token(guarded: ServedPage) -> None:
    token = guarded.address.token
    assert token is not None
    assert len(token) >= 32
    assert guarded.address.url.endswith(f":{guarded.port}/?token={token}")
    for path in ("/", "/static/index.html", "/api/models", "/?token=wrong", "/?token=", "/nothing"):
        answer = guarded.ask(path)
        assert answer.status == 401
        assert "token" in answer.error
        assert token not in answer.body.decode()
    assert guarded.ask("/api/adapt", {}).status == 401
    entered = guarded.ask(f"/?token={token}")
    assert entered.status == 200
    cookie = entered.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
    kept = {"Cookie": cookie.partition(";")[0]}
    assert guarded.ask("/api/models", headers=kept).status == 200
    assert "set-cookie" not in guarded.ask("/api/models", headers=kept).headers
    wrong = {"Cookie": kept["Cookie"][:-1]}
    assert guarded.ask("/api/models", headers=wrong).status == 401
    assert guarded.ask("/api/models", headers={"Cookie": "\x80=;;,"}).status == 401


def test_to_the_network_names_of_strangers_are_refused_even_with_the_token(guarded: ServedPage) -> None:
    for host, status in (
        (f"192.0.2.7:{guarded.port}", 200),
        (f"{socket.gethostname()}:{guarded.port}", 200),
        (f"evil.example:{guarded.port}", 403),
    ):
        answer = guarded.ask(f"/?token={guarded.address.token}", headers={"Host": host})
        assert answer.status == status


def test_which_addresses_are_this_machine_alone() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "localhost", "::1", "127.1.2.3"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "192.0.2.7", "example.org", "localhost.example.org"]))
    assert Address.of("127.0.0.1", 8421).token is None
    assert Address.of("192.0.2.7", 8421).token != Address.of("192.0.2.7", 8421).token
    assert Address("::1", 8421).url == "http://[::1]:8421/"


def test_an_error_of_ours_tells_the_terminal_and_not_the_client(
    models: Models, runs_folder: Path, lesson: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"something in {runs_folder}")

    with served(models, runs_folder, report=said.append) as page:
        monkeypatch.setattr("firststep.page.lessons.step_events", fail)
        monkeypatch.setattr("firststep.page.app.checked_lesson", lambda *_: fail() if said else "lesson")
        monkeypatch.setattr("firststep.page.lessons._digest", lambda *_: "")
        last = page.adapt(lesson)[-1]
        assert last["message"].startswith("internal error (RuntimeError)")
        answer = page.ask("/api/adapt", lesson)
        assert answer.status == 500
        assert json.loads(answer.body)["error"] == last["message"]
    assert len(said) == 2
    assert all(str(runs_folder) in line for line in said)
