"""One strict build of the site."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from docsite.assemble import assemble
from docsite.outside import requests_of_site
from docsite.paths import CONFIG, ROOT
from docsite.references import unresolved


@dataclass(frozen=True)
class Built:
    pages: int
    size: int
    """Bytes of all files."""
    seconds: float


class BuildFailed(Exception):
    """Errors of the build, one line each."""


def build(source: Path, site: Path) -> Built:
    """Assemble the pages in ``source`` and build them to ``site``.

    A broken link, a dead reference in a docstring and a request to another host are errors.
    """
    start = time.perf_counter()
    if dead := unresolved():
        raise BuildFailed("\n".join(dead))
    assemble(source)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(CONFIG), "-d", str(site)],
        cwd=ROOT,
        env=os.environ | {"SITE_SOURCE": str(source), "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        said = (done.stdout + done.stderr).splitlines()
        raise BuildFailed("\n".join([line for line in said if not line.startswith("INFO ")] or said))
    if fetched := [f"{path}: fetches {address}" for path, address in requests_of_site(site)]:
        raise BuildFailed("\n".join(fetched))
    files = [path for path in site.rglob("*") if path.is_file()]
    pages = sum(path.suffix == ".html" for path in files)
    return Built(pages, sum(path.stat().st_size for path in files), time.perf_counter() - start)
