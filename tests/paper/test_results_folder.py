"""The results of this repository: every page is in the index, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from firststep.paper import EXPERIMENTS, html_overview, read_results

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
        assert result.folder.parent.name == result.record.experiment
        words = result.record.command
        data = words[words.index("--data") + 1].removesuffix("=PATH")
        assert result.folder.name == f"{data}-{words[words.index('--name') + 1]}"
    page = html_overview(RESULTS)
    anchors = re.findall(r'<h[2-4] id="([^"]+)"', page)
    assert {f"{result.record.experiment}-{result.folder.name}" for result in results} <= set(anchors)
    assert set(EXPERIMENTS) <= set(anchors)
    links = re.findall(r'href="#([^"]+)"', page)
    assert set(links) <= set(anchors)
    # In the paper's order, and every figure of it: ours, or else the paper's numbers alone
    assert [name for name in anchors if name in EXPERIMENTS] == list(EXPERIMENTS)
    absent = [name for name in EXPERIMENTS if not any(result.record.experiment == name for result in results)]
    alone = [name for name in absent if EXPERIMENTS[name]().figure and EXPERIMENTS[name]().is_of_paper]
    stored = len(list(RESULTS.rglob("figure.png")))
    assert page.count("data:image/png;base64,") == stored + len(alone)
    # A result stored before the experiment's definition changed says so.
    start = page.index('id="figure2-glyphs-conv6-16"')
    section = page[start : page.index("<h3", start)]
    assert "As it was defined then: Conv6 alone" in section
    assert "glyphs; Conv6, 16 filters; 32 px; 100 updates × 4 tasks" in section
