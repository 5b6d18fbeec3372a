"""The site builds strictly, whole, and fetches nothing from elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from docsite import build as building
from docsite.build import BuildFailed, Built, build
from docsite.markdown import mathml, themed
from docsite.outside import outside_requests
from docsite.paths import CONFIG, ROOT

README = (ROOT / "README.md").read_text()


class _Loader(yaml.SafeLoader):
    """mkdocs.yml has a value from the environment."""


_Loader.add_constructor("!ENV", lambda loader, node: loader.construct_sequence(node))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Built]:
    folder = tmp_path_factory.mktemp("site")
    return folder / "site", build(folder / "source", folder / "site")


@pytest.mark.slow
def test_it_builds_strictly_with_every_page(site: tuple[Path, Built]) -> None:
    folder, built = site
    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("results/**/*.md"), ROOT / "README.md"]
    for page in pages:
        name = "index.html" if page.name in ("README.md", "index.md") else f"{page.stem}.html"
        assert (folder / page.relative_to(ROOT).parent / name).is_file(), page
    assert built.pages > len(pages)
    assert built.size < 20 * 2**20


@pytest.mark.slow
def test_it_has_search_and_both_schemes(site: tuple[Path, Built]) -> None:
    folder, _ = site
    found = json.loads((folder / "search" / "search_index.json").read_text())["docs"]
    assert any("Gauss-Newton" in entry["text"] for entry in found)
    home = (folder / "index.html").read_text()
    assert 'data-md-color-scheme="default"' in home
    assert 'data-md-color-scheme="slate"' in home
    assert "glyphs-shipped-dark.svg#only-dark" in home


def test_home_figure_has_a_file_for_each_scheme_and_width() -> None:
    (figure,) = re.findall(r"<picture>(?:(?!</picture>).)*glyphs-shipped.*?</picture>", README, re.DOTALL)
    files = re.findall(r'(?:src|srcset)="([^"]+)"', figure)
    assert {Path(file).stem.removeprefix("glyphs-shipped-") for file in files} == {
        "light", "dark", "phone-light", "phone-dark"
    }  # fmt: skip
    for file in files:
        assert "fill: #ffffff" not in (ROOT / file).read_text()  # no box around it


def test_pictures_follow_the_switch_of_the_site() -> None:
    picture = """<picture>
      <source media="(max-width: 9px) and (prefers-color-scheme: dark)" srcset="a-phone-dark.svg">
      <source media="(max-width: 9px)" srcset="a-phone.svg">
      <source media="(prefers-color-scheme: dark)" srcset="a-dark.svg">
      <img src="a.svg" alt="words">
    </picture>"""
    assert themed(picture) == (
        '<picture><source media="(max-width: 9px)" srcset="a-phone.svg">'
        '<img src="a.svg#only-light" alt="words"></picture>'
        '<picture><source media="(max-width: 9px)" srcset="a-phone-dark.svg">'
        '<img src="a-dark.svg#only-dark" alt="words"></picture>'
    )
    plain = '<picture><img src="a.svg" alt="words"></picture>'
    assert themed(plain) == plain


def titles(nav: object) -> Iterator[str]:
    if isinstance(nav, list):
        for entry in nav:
            yield from titles(entry)
    elif isinstance(nav, dict):
        for entry in nav.values():
            yield from titles(entry)
    else:
        yield str(nav)


def test_every_page_of_docs_has_a_place_in_the_navigation() -> None:
    nav = set(titles(yaml.load(CONFIG.read_text(), _Loader)["nav"]))
    pages = {str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md")}
    assert pages <= nav


@pytest.mark.slow
def test_a_broken_link_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_page(target: Path) -> None:
        target.mkdir()
        (target / "README.md").write_text("[there](nowhere.md)\n")

    config = tmp_path / "mkdocs.yml"
    text = re.sub(r"(?s)^nav:.*", "nav: [README.md]\n", CONFIG.read_text(), flags=re.MULTILINE)
    config.write_text(text.replace("  - docs/style.css", "").replace("extra_css:", ""))
    monkeypatch.setattr(building, "assemble", one_page)
    monkeypatch.setattr(building, "CONFIG", config)
    with pytest.raises(BuildFailed, match=r"nowhere\.md"):
        build(tmp_path / "source", tmp_path / "site")


@pytest.mark.parametrize(
    ("page", "fetched"),
    [
        ('<a href="https://a.org">a link</a>', 0),
        ('<script src="https://a.org/x.js"></script>', 1),
        ('<img src="//a.org/x.png" srcset="https://b.org/y.png 2x">', 2),
        ('<link rel="preconnect" href="https://fonts.a.org">', 1),
        ('<link rel="canonical" href="https://a.org">', 0),
        ("<style>@import 'https://a.org/x.css'; b { background: url(//a.org/y.png) }</style>", 2),
        ('<p style="background: url(http://a.org/z.png)">', 1),
        ('<img src="x.png"><script src="y.js"></script>', 0),
    ],
)
def test_what_counts_as_an_outside_request(page: str, fetched: int) -> None:
    assert len(outside_requests(page)) == fetched


def test_formulas_are_mathml() -> None:
    assert mathml(r"\frac{a}{b}", display=True).startswith(
        '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">'
    )
    assert "<mfrac>" in mathml(r"\frac{a}{b}", display=False)
