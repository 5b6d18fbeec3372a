"""Downloads from a local server are complete and correct, or leave nothing."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import dataset_copies as copies
from firststep.cli import main
from firststep.data import DATASETS, DatasetInfo, PublishedFile, download_files, register_dataset
from firststep.errors import FirststepError

CONTENT = bytes(range(256)) * 2000


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.cut: int | None = None
        self.asked = 0
        self.wait = threading.Event()
        """while set, the server holds back the second half of a file"""

    def info(self, **files: bytes) -> DatasetInfo:
        """Return Omniglot with these files at this address. Names have _ for the dot."""
        self.files = {
            name.replace("_zip", ".zip").replace("_gz", ".gz"): data for name, data in files.items()
        }
        listed = tuple(
            PublishedFile(
                name=n, md5=hashlib.md5(d).hexdigest(), url=f"http://127.0.0.1:{self.server_port}/{n}"
            )
            for n, d in self.files.items()
        )
        return replace(DATASETS["omniglot"], files=listed)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked += 1
        content = self.server.files.get(self.path.lstrip("/"))
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            half = len(content) // 2
            self.wfile.write(content[:half])
            while self.server.wait.is_set():
                time.sleep(0.02)
            self.wfile.write(content[half : self.server.cut])

    def log_message(self, *ignored: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_whole_and_right(server: Server, tmp_path: Path) -> None:
    info = server.info(a_zip=CONTENT, b_zip=b"small")
    seen: list[tuple[str, int, int]] = []
    files = download_files(info, tmp_path / "new", lambda *step: seen.append(step))
    assert [file.read_bytes() for file in files] == [CONTENT, b"small"]
    assert seen[0][0] == "downloading a.zip"
    assert max(done for what, done, _ in seen if "a.zip" in what) == len(CONTENT)
    # The second time the server is not asked.
    asked = server.asked
    download_files(info, tmp_path / "new")
    assert server.asked == asked


def test_wrong_checksum(server: Server, tmp_path: Path) -> None:
    info = server.info(a_zip=CONTENT)
    server.files["a.zip"] = CONTENT[:-1] + b"!"
    with pytest.raises(FirststepError, match=r"a\.zip gave another file than expected \(md5 is not"):
        download_files(info, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_interrupted_transfer(server: Server, tmp_path: Path) -> None:
    info = server.info(a_zip=CONTENT)
    server.cut = len(CONTENT) // 2
    with pytest.raises(FirststepError, match=r"download of .*a\.zip failed .*nothing was kept") as caught:
        download_files(info, tmp_path)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    server.cut = None
    assert download_files(info, tmp_path)[0].read_bytes() == CONTENT


KILLED = """
import sys, pathlib
from firststep.data import DatasetInfo, PublishedFile, Layout, download_files
file = PublishedFile(name="a.zip", md5=sys.argv[2], url=sys.argv[1])
layout = Layout("", lambda root: [], lambda root: None)
info = DatasetInfo(name="x", about="", image_size=8, layouts=(layout,), files=(file,))
download_files(info, pathlib.Path(sys.argv[3]))
"""


def test_what_a_killed_download_left_is_removed_by_the_next(server: Server, tmp_path: Path) -> None:
    info = server.info(a_zip=CONTENT)
    (tmp_path / "tmpmine").write_text("the user's own")
    server.wait.set()
    file = info.files[0]
    arguments = [sys.executable, "-c", KILLED, str(file.url), file.md5, str(tmp_path)]
    process = subprocess.Popen(arguments)
    deadline = time.monotonic() + 240
    while not any(p.stat().st_size for p in tmp_path.glob(".a.zip.*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait(timeout=240)
    server.wait.clear()
    assert list(tmp_path.glob(".a.zip.*"))
    download_files(info, tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.zip", "tmpmine"]
    assert (tmp_path / "a.zip").read_bytes() == CONTENT


def test_full_disk(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary file is a device that is always full, which raises a real ENOSPC."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")

    @contextlib.contextmanager
    def full(path: Path) -> Iterator[Path]:
        yield Path("/dev/full")

    monkeypatch.setattr("firststep.data.download.replacing", full)
    with pytest.raises(FirststepError, match=r"no space left in .* for a\.zip"):
        download_files(server.info(a_zip=CONTENT), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_not_found_and_no_server(server: Server, tmp_path: Path) -> None:
    info = server.info(a_zip=CONTENT)
    server.files.clear()
    with pytest.raises(FirststepError, match="404"):
        download_files(info, tmp_path)
    nobody = replace(info, files=(replace(info.files[0], url="http://127.0.0.1:9/a.zip"),))
    with pytest.raises(FirststepError, match="refused"):
        download_files(nobody, tmp_path)


def test_the_users_own_file_is_not_replaced(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"mine")
    with pytest.raises(FirststepError, match=r"a\.zip exists but its md5 is .* not the official"):
        download_files(server.info(a_zip=CONTENT), tmp_path)
    assert (tmp_path / "a.zip").read_bytes() == b"mine"
    assert server.asked == 0


@pytest.mark.parametrize("name", ["mini-imagenet", "tiered-imagenet", "cub"])
def test_where_there_is_no_address_it_says_how_to_get_it(name: str, tmp_path: Path) -> None:
    with pytest.raises(FirststepError, match="no free direct download; get it from https://"):
        download_files(DATASETS[name], tmp_path)


def test_official_addresses_and_checksums() -> None:
    for name in ("omniglot", "cifar-fs", "fc100"):
        for file in DATASETS[name].files:
            assert file.url is not None
            assert file.url.startswith("https://")
            assert file.url.endswith("/" + file.name)
            assert len(file.md5) == 32


def test_command_downloads_and_opens(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copies.omniglot_zips(tmp_path)
    zips = {
        half: (tmp_path / f"{half}.zip").read_bytes() for half in ("images_background", "images_evaluation")
    }
    info = server.info(**{f"{half}_zip": content for half, content in zips.items()})
    register_dataset(replace(info, name="omniglot-here"))
    try:
        assert main(["data", "omniglot-here", str(tmp_path / "got"), "--download", "--partial"]) == 0
    finally:
        DATASETS.unregister("omniglot-here")
    assert "images_background.zip" in capsys.readouterr().out
