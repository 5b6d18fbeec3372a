"""The page in a real browser: Debian's Chromium, driven by Playwright, with everything outside blocked."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

MISSING = "there is no Chromium for the tests in a browser; get it by: apt-get install chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A camera that shows a moving picture, and nobody who has to allow it
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
]
PATIENCE = 180_000
"""Milliseconds that anything may take before it counts as broken: the cores may be shared."""
OUTSIDE = re.compile(r"^(?!http://127\.0\.0\.1:|data:|blob:)")
WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
"""JavaScript: the width of the content, and of the window that it should fit."""
Point = tuple[float, float]

SQUARE: Sequence[Point] = [(0.2, 0.2), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8), (0.2, 0.2)]
DASH: Sequence[Point] = [(0.15, 0.5), (0.85, 0.5)]


@contextmanager
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip(MISSING)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """One open page, what it complained about, and where it wanted to go."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context, self.address = context, address
        self.complaints: list[str] = []
        self.outside: list[str] = []
        context.set_default_timeout(PATIENCE)
        context.route(OUTSIDE, self._refuse)
        self.page = self.open(address)

    def open(self, address: str) -> Page:
        page = self.context.new_page()
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(address)
        return page

    def _refuse(self, route: Any) -> None:
        self.outside.append(route.request.url)
        route.abort()

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def card(self, name: str) -> Locator:
        return self.page.get_by_role("article", name=f"Class {name}", exact=True)

    def settled(self, models: int = 2) -> None:
        """Wait until all models have answered the newest examples."""
        from playwright.sync_api import expect

        expect(self.page.locator(".model[data-status=done]")).to_have_count(models)

    def names(self) -> list[str]:
        return [str(box.input_value()) for box in self.page.get_by_label("Name of the class").all()]

    def draw(self, pad: Locator, points: Sequence[Point]) -> None:
        """Draw with the mouse, as a hand does: down, many small moves, up."""
        pad.scroll_into_view_if_needed()
        box = pad.bounding_box()
        assert box is not None
        places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
        self.page.mouse.move(*places[0])
        self.page.mouse.down()
        for place in places[1:]:
            self.page.mouse.move(*place, steps=6)
        self.page.mouse.up()

    def drop(self, target: Locator, paths: Sequence[Path]) -> None:
        """Drop files or folders from the file manager, as the browser itself gets them."""
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        assert box is not None
        session = self.context.new_cdp_session(self.page)
        data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        for kind in ("dragEnter", "dragOver", "drop"):
            session.send("Input.dispatchDragEvent", {"type": kind, **place, "data": data})
        session.detach()

    def teach_two(self) -> None:
        """Teach an empty page two classes: a drawn square is A, a drawn dash is B."""
        from playwright.sync_api import expect

        self.button("Start empty").click()
        for name, shape in (("A", SQUARE), ("B", DASH)):
            card = self.card(name)
            self.draw(card.locator("canvas"), shape)
            card.get_by_role("button", name="Add", exact=True).click()
            expect(card.locator("button.thumb")).to_have_count(1)
