"""The results of this repository: every page is in the index, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from firststep.paper import html_overview, read_results

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
PAGES = [ROOT / "README.md", ROOT / "docs" / "paper.md", *sorted(RESULTS.rglob("README.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    absent = [
        link for link in links if not link.startswith("http") and not (page.parent / link).resolve().exists()
    ]
    assert not absent


def test_the_index_has_every_result() -> None:
    index = (RESULTS / "README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(RESULTS).as_posix() for page in RESULTS.rglob("README.md")]
    assert [page for page in pages if page != "README.md" and f"]({page})" not in index] == []


def test_every_result_is_read_and_its_command_names_its_folder() -> None:
    results = read_results(RESULTS)
    assert len(results) >= 17
    for result in results:
        assert result.folder.parent.name == result.experiment
        words = result.facts["command"].split()
        data = words[words.index("--data") + 1].removesuffix("=PATH")
        assert result.folder.name == f"{data}-{words[words.index('--name') + 1]}"
    page = html_overview(RESULTS)
    assert page.count("<h2") == len(results)
    assert page.count("data:image/png;base64,") == len(list(RESULTS.rglob("figure.png")))
