"""ONNX Runtime Web, which runs models in a browser: from a folder or an archive, or fetched by npm."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from firststep.data import user_cache
from firststep.errors import FirststepError
from firststep.utils import make_folder, read_bytes

VERSION = "1.30.0"
ARCHIVE = f"onnxruntime-web-{VERSION}.tgz"
SHA512 = (
    "ab4cbe26baedba45d2cec05610c71c55fa97db92d19a8b171c5f8269126683ca"
    "590a5cdc57bb2f35ce2b298de32f4d956fb42644c0ecd528a0a91e025c07ca61"
)
SCRIPT, WASM = "ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"
"""Only the CPU's part: 14 MB of the 33 MB in the archive."""
TIMEOUT = 600
"""Seconds that npm may take."""


@dataclass(frozen=True)
class WebRuntime:
    """ONNX Runtime Web as a web page contains it."""

    script: bytes
    wasm: bytes

    @property
    def name(self) -> str:
        """Name and version."""
        found = re.search(rb"ONNX Runtime Web v[\w.-]+", self.script[:1000])
        return found[0].decode() if found else "ONNX Runtime Web"


def find_web_runtime(path: Path | None = None, *, download: bool = True) -> WebRuntime:
    """Return the runtime.

    Args:
        path: the folder or the .tgz of the npm package onnxruntime-web. None takes the archive in the user's
            cache.
        download: whether npm may fetch that archive if it is missing.
    """
    if path is not None:
        return _in_folder(path) if path.is_dir() else _in_archive(path)
    archive = user_cache() / ARCHIVE
    if not archive.is_file():
        if not download:
            raise FirststepError(f"onnxruntime-web is not at hand: {how_to_get()}")
        download_runtime(archive)
    return _in_archive(archive)


def download_runtime(target: Path) -> None:
    """Let npm fetch its archive, which must have the published checksum."""
    npm = shutil.which("npm")
    if npm is None:
        raise FirststepError(f"there is no npm to fetch onnxruntime-web with: {how_to_get()}")
    make_folder(target.parent)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".npm-") as folder:
        command = [npm, "pack", "--silent", f"onnxruntime-web@{VERSION}", "--pack-destination", folder]
        try:
            subprocess.run(
                command, capture_output=True, check=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise FirststepError(
                f"npm did not fetch onnxruntime-web ({_reason(error)}): {how_to_get()}"
            ) from None
        archive = Path(folder) / ARCHIVE
        if not archive.is_file() or hashlib.sha512(archive.read_bytes()).hexdigest() != SHA512:
            raise FirststepError(f"npm gave another {ARCHIVE} than the published one: {how_to_get()}")
        archive.replace(target)


def _reason(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        return lines[0] if lines else f"exit code {error.returncode}"
    return str(error).splitlines()[0]


def how_to_get() -> str:
    return (
        f"run `npm pack onnxruntime-web@{VERSION}` where there is network, then give "
        f"`--runtime {ARCHIVE}` to `firststep adapt` or `firststep predict`"
    )


def _in_folder(folder: Path) -> WebRuntime:
    for place in (folder, folder / "dist", folder / "node_modules" / "onnxruntime-web" / "dist"):
        if (place / SCRIPT).is_file() and (place / WASM).is_file():
            return WebRuntime(read_bytes(place / SCRIPT), read_bytes(place / WASM))
    raise _incomplete(folder)


def _incomplete(path: Path) -> FirststepError:
    return FirststepError(f"{path} has no {SCRIPT} and {WASM} of onnxruntime-web: {how_to_get()}")


def _in_archive(path: Path) -> WebRuntime:
    try:
        with tarfile.open(path, "r:gz") as archive:
            parts = [archive.extractfile(f"package/dist/{name}") for name in (SCRIPT, WASM)]
            script, wasm = (part.read() if part else b"" for part in parts)
    except KeyError:
        raise FirststepError(
            f"{path} has no {SCRIPT} and {WASM} of onnxruntime-web: {how_to_get()}"
        ) from None
    except (OSError, EOFError, tarfile.TarError) as error:
        raise FirststepError(f"{path} cannot be read as a .tgz of npm ({error}): {how_to_get()}") from None
    return WebRuntime(script, wasm)
