"""``firststep page`` as a process: its address, its end, and what it refuses."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firststep.cli import main
from firststep.errors import FirststepError
from firststep.page import DEFAULT_PORT, bound

Captured = pytest.CaptureFixture[str]


@contextmanager
def started(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the process and return it with the printed address."""
    command = [sys.executable, "-m", "firststep", "page", *map(str, arguments)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "BROWSER": "true"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.match(r"(http://\S+)  \(Ctrl-C stops\)$", line)
        assert found, (line, process.stderr and process.stderr.read())
        yield process, found[1]
    finally:
        process.kill()
        process.communicate()


def get(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=240)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_it_serves_until_ctrl_c_and_says_one_line(runs_folder: Path) -> None:
    """Even while a client listens; and it opens the browser, here a program that does nothing."""
    with started(runs_folder / "plain", runs_folder / "none", "--runs", runs_folder) as (process, url):
        port = int(url.rsplit(":", 1)[1].rstrip("/"))
        assert url == f"http://127.0.0.1:{port}/"
        assert get(port, "/api/models") == 200
        assert get(port, "/api/runs/plain") == 200
        with socket.create_connection(("127.0.0.1", port), timeout=240):
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=240)
    assert process.returncode == 0
    assert out == ""
    said = err.splitlines()
    assert said[0].startswith("firststep: warning: none cannot be used: none is not a folder")
    assert said[1:] == ["firststep: stopped"]


def test_another_address_warns_and_prints_a_token(runs_folder: Path) -> None:
    flags = ["--host", "0.0.0.0", "--port", "0", "--no-open"]
    with started(runs_folder / "plain", *flags) as (process, url):
        port, token = re.match(r"http://\S+:(\d+)/\?token=(\S{32})$", url).groups()  # type: ignore[union-attr]
        assert get(int(port), "/") == 401
        assert get(int(port), f"/?token={token}") == 200
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=240)
    assert process.returncode == 0
    assert err.splitlines()[0].startswith("firststep: warning: served to the network at 0.0.0.0")


def test_a_port_that_is_taken(runs_folder: Path, capsys: Captured) -> None:
    with bound("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert main(["page", str(runs_folder / "plain"), "--no-open", "--port", str(port)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        words = "is taken by another program; leave out --port to take the next that is free"
        assert line == f"firststep: port {port} {words}"


def test_without_a_port_the_next_free_one_is_taken() -> None:
    with bound("127.0.0.1", None) as first, bound("127.0.0.1", None) as second:
        ports = [each.getsockname()[1] for each in (first, second)]
    assert DEFAULT_PORT <= ports[0] < ports[1]


@pytest.mark.parametrize(
    ("host", "port", "words"),
    [
        ("127.0.0.1", 65536, "0..65535"),
        ("127.0.0.1", -1, "0..65535"),
        ("192.0.2.1", 0, "is not an address of this machine"),
        ("no such name", 0, "is not an address of this machine"),
        ("", 0, "is not an address of this machine"),
    ],
)
def test_an_address_that_there_is_not(host: str, port: int, words: str) -> None:
    with pytest.raises(FirststepError, match=re.escape(words)), bound(host, port):
        pass


def test_models_that_cannot_be_loaded_are_all_that_there_is(tmp_path: Path, capsys: Captured) -> None:
    assert main(["page", str(tmp_path / "nothing"), "builtin:nothing", "--no-open"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2].partition(" cannot")[0] for line in lines[:2]] == [
        "warning: nothing",
        "warning: builtin:nothing",
    ]
    assert lines[2] == "firststep: none of the models can be loaded"
