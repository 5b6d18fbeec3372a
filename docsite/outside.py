"""Find what a built page would fetch from other sites when it is opened; plain links are allowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

_ELSEWHERE = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
_CSS_URL = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])\s*((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)
_FETCHING = {
    *("audio", "embed", "iframe", "image", "img", "input", "object", "script", "source", "track", "use"),
    "video",
}
_FETCHING_LINKS = {
    "stylesheet",
    "icon",
    "preload",
    "prefetch",
    "modulepreload",
    "preconnect",
    "dns-prefetch",
    "manifest",
}


class _Requests(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag in _FETCHING:
            addresses = [values.get(name, "") for name in ("src", "href", "xlink:href", "data", "poster")]
            addresses += re.split(r"[,\s]+", values.get("srcset", ""))
        elif tag == "link" and _FETCHING_LINKS & set(values.get("rel", "").lower().split()):
            addresses = [values.get("href", "")]
        else:
            addresses = []
        self.found += [address for address in addresses if _ELSEWHERE.match(address)]
        self.found += _CSS_URL.findall(values.get("style", ""))


def outside_requests(page: str) -> list[str]:
    """Return outside addresses that a browser would fetch for this HTML, its inline styles included."""
    parser = _Requests()
    parser.feed(page)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", page, re.DOTALL | re.IGNORECASE)
    return parser.found + [address for style in styles for address in _CSS_URL.findall(style)]


def requests_of_site(site: Path) -> Iterator[tuple[Path, str]]:
    """Return (file, address) of all that the built pages, styles and pictures would fetch from outside."""
    for path in sorted(site.rglob("*")):
        if path.suffix in (".html", ".svg"):
            addresses = outside_requests(path.read_text())
        elif path.suffix == ".css":
            addresses = _CSS_URL.findall(path.read_text())
        else:
            continue
        yield from ((path.relative_to(site), address) for address in addresses)
