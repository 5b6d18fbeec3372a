"""Teach and ask, in a real browser: drawing, dropping, pasting, renaming, undoing."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import expect

from browsing import DASH, SQUARE, Tab
from firststep.data import load_image
from served_page import ServedPage, png


def picture(shape: str = "square", side: int = 48) -> np.ndarray:
    """Draw dark ink on light paper."""
    pixels = np.full((side, side), 250, dtype=np.uint8)
    if shape == "square":
        pixels[10:38, 10:38] = 20
        pixels[16:32, 16:32] = 250
    else:
        pixels[20:28, 6:42] = 20
    return pixels


def test_first_view_is_an_episode_with_answers_of_all_models(tab: Tab) -> None:
    tab.settled()
    expect(tab.page.get_by_text("A random test episode of glyphs")).to_be_visible()
    expect(tab.page.locator("svg.bars")).to_have_count(2)
    expect(tab.page.locator("#accuracy svg.chart")).to_be_visible()
    expect(tab.page.locator("#walks svg.walk")).to_have_count(2)
    missing = tab.page.get_by_role("article", name="missing")
    expect(missing.get_by_role("status")).not_to_be_empty()  # a model that fails leaves the page usable
    words = tab.page.locator(".model .words").first
    expect(words).to_contain_text("right after 1 step")


def test_a_drawing_is_smoothed_undone_added_and_asked_about(tab: Tab) -> None:
    tab.settled()
    tab.teach_two()
    card = tab.card("A")
    add = card.get_by_role("button", name="Add", exact=True)
    expect(add).to_be_disabled()
    tab.draw(card.locator("canvas"), DASH)
    expect(add).to_be_enabled()
    card.get_by_role("button", name="Undo stroke").click()
    expect(add).to_be_disabled()

    tab.draw(tab.page.get_by_label("Drawing pad for a question"), SQUARE)
    expect(tab.page.locator("button.question")).to_have_count(1)
    tab.settled()
    expect(tab.page.locator("svg.bars")).to_have_count(2)
    first = tab.page.locator("button.question img").get_attribute("src")
    tab.draw(tab.page.get_by_label("Drawing pad for a question"), [(0.5, 0.3), (0.5, 0.7)])
    expect(tab.page.locator("button.question img")).not_to_have_attribute("src", str(first))
    expect(tab.page.locator("button.question")).to_have_count(1)  # the same question, one stroke further
    tab.settled()
    tab.page.get_by_label("In truth it is").select_option("A")
    expect(tab.page.locator(".model .words").first).to_contain_text("of 1 right")


def test_new_example_is_learned_at_once_and_drops_what_was_under_way(tab: Tab) -> None:
    tab.settled()
    held: list[Any] = []
    first = tab.card(tab.names()[0]).locator("button.thumb")
    count = first.count()
    # The server never hears of the first two requests: only their being dropped can let the page go on.
    tab.page.route("**/api/adapt", lambda route: held.append(route) if len(held) < 2 else route.continue_())
    with tab.page.expect_request("**/api/adapt"):
        first.nth(0).click()
    expect(tab.page.locator(".model[data-status=running]")).to_have_count(2)
    with tab.page.expect_event("requestfailed"):
        first.nth(0).click()
    tab.settled()
    expect(first).to_have_count(count - 2)
    sizes = sorted(len(one["examples"]) for one in held[0].request.post_data_json["classes"])
    assert sizes[0] == sizes[-1] - 1  # what was held had one example less in one class


def test_thumbnails_are_what_adapt_sees(tab: Tab, tmp_path: Path) -> None:
    tab.settled()
    tab.button("Start empty").click()
    file = tmp_path / "a.png"
    Image.fromarray(picture()).save(file)
    tab.drop(tab.card("A"), [file])
    thumb = tab.card("A").locator("button.thumb img")
    expect(thumb).to_have_count(1)
    address = thumb.get_attribute("src")
    assert address is not None
    seen = tmp_path / "seen.png"
    seen.write_bytes(base64.b64decode(address.partition(",")[2]))
    with Image.open(seen) as shown:
        assert np.array_equal(np.array(shown)[..., None], load_image(file, 16, 1, ink=True))


def test_dropped_folders_become_classes_and_what_is_no_picture_gets_a_line(tab: Tab, tmp_path: Path) -> None:
    tab.settled()
    tab.button("Start empty").click()
    for name, shape in (("ring", "square"), ("bar", "dash")):
        (tmp_path / "all" / name).mkdir(parents=True)
        for number in range(2):
            Image.fromarray(picture(shape, 48)).save(tmp_path / "all" / name / f"{number}.png")
    tab.drop(tab.page.locator(".more"), [tmp_path / "all"])
    expect(tab.card("ring").locator("button.thumb")).to_have_count(2)
    expect(tab.card("bar").locator("button.thumb")).to_have_count(2)
    assert tab.names() == ["bar", "ring"]  # in place of the empty cards
    tab.button("Undo the last change").click()
    assert tab.names() == ["A", "B", "C"]
    name = tab.card("B").get_by_label("Name of the class")
    name.fill("mine")
    name.press("Enter")
    tab.drop(tab.page.locator(".more"), [tmp_path / "all"])
    expect(tab.card("ring").locator("button.thumb")).to_have_count(2)
    assert tab.names() == ["mine", "bar", "ring"]  # a card with a name of its own stays

    tab.drop(tab.page.locator(".asking"), [tmp_path / "all" / "ring"])
    expect(tab.page.locator("button.question")).to_have_count(2)
    expect(tab.page.get_by_label("In truth it is").locator("option:checked")).to_have_text("ring")

    wrong = tmp_path / "notes.png"
    wrong.write_text("not a picture at all")
    tab.drop(tab.card("ring"), [wrong, tmp_path / "all" / "ring" / "0.png"])
    expect(tab.card("ring").locator("button.thumb")).to_have_count(3)
    expect(tab.card("ring").get_by_role("alert")).to_contain_text("notes.png")
    expect(tab.card("bar").locator(".problem")).to_be_empty()


def test_pasted_picture_goes_to_the_card_that_was_used_last(tab: Tab) -> None:
    tab.settled()
    tab.button("Start empty").click()
    tab.card("B").get_by_label("Name of the class").focus()
    content = base64.b64encode(png(picture())).decode()
    paste = """(text) => {
        const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
        const data = new DataTransfer();
        data.items.add(new File([bytes], "clip.png", { type: "image/png" }));
        const paste = new ClipboardEvent("paste", { clipboardData: data, bubbles: true });
        document.activeElement.dispatchEvent(paste);
    }"""
    tab.page.evaluate(paste, content)
    expect(tab.card("B").locator("button.thumb")).to_have_count(1)
    expect(tab.card("A").locator("button.thumb")).to_have_count(0)


def test_names_are_text_and_all_changes_can_be_undone(tab: Tab) -> None:
    tab.settled()
    tab.teach_two()
    hostile = '<img src=x onerror="document.title=1">'
    name = tab.card("A").get_by_label("Name of the class")
    name.fill(hostile)
    name.press("Enter")
    expect(tab.card(hostile)).to_have_count(1)
    tab.settled()
    tab.draw(tab.page.get_by_label("Drawing pad for a question"), SQUARE)
    expect(tab.page.locator("svg.bars text.name", has_text="<img").first).to_be_attached()
    assert tab.page.locator("img[src=x]").count() == 0
    assert tab.page.title().startswith("firststep")

    other = tab.card("B").get_by_label("Name of the class")
    other.fill(hostile)
    other.press("Enter")
    expect(tab.card("B").get_by_role("alert")).to_contain_text("already")

    tab.card("B").get_by_role("button", name="Remove class B").click()
    expect(tab.card("B")).to_have_count(0)
    tab.button("Undo the last change").click()
    expect(tab.card("B").locator("button.thumb")).to_have_count(1)
    tab.card("B").get_by_role("button", name="Remove example 1 of B").click()
    expect(tab.card("B").locator("button.thumb")).to_have_count(0)
    expect(tab.card("B")).to_contain_text("left out until it has one")
    tab.page.locator("h1").first.click()  # in a name, the keys would undo letters
    tab.page.keyboard.press("Control+z")
    expect(tab.card("B").locator("button.thumb")).to_have_count(1)


def test_too_many_classes_for_one_model_is_a_line_in_its_panel(tab: Tab) -> None:
    tab.settled()
    for _ in range(2):
        tab.button("+ Add a class").click()
    assert len(tab.names()) == 7
    for name in tab.names()[5:]:
        tab.draw(tab.card(name).locator("canvas"), SQUARE)
        tab.card(name).get_by_role("button", name="Add", exact=True).click()
        expect(tab.card(name).locator("button.thumb")).to_have_count(1)
    tab.settled(1)  # the shared head takes any number
    plain = tab.page.locator(".model[data-model=plain]")
    expect(plain.get_by_role("status")).to_contain_text("takes at most 5")


def test_webcam_records_while_the_button_is_held(tab: Tab, page: ServedPage) -> None:
    """Use the browser's fake camera; only the line about the model's purpose is changed."""
    listed = page.ask("/api/models").json()
    for model in listed["models"]:
        model["photographs"] = True
    tab.page.route("**/api/models", lambda route: route.fulfill(json=listed))
    tab.page.reload()
    tab.settled()
    tab.button("Start empty").click()
    card = tab.card("A")
    card.get_by_role("button", name="Webcam").click()
    record = card.get_by_role("button", name="Hold to record")
    expect(record).to_be_visible()
    record.hover()
    tab.page.mouse.down()
    expect(card.get_by_role("button", name="Recording: 3")).to_be_visible()
    tab.page.mouse.up()
    expect(card.locator("button.thumb").nth(2)).to_be_visible()
    card.get_by_role("button", name="Webcam").click()
    expect(record).to_be_hidden()
