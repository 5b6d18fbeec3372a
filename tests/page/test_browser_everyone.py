"""The page for everyone: phone, dark, keyboard, screen readers, and a server that goes away."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from accessibility import shortcomings
from browsing import DASH, WIDTHS, Tab
from firststep.page import Address, Models, Page, bound, in_background
from served_page import ServedPage


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rules_of_accessibility(tab: Tab, scheme: Any) -> None:
    tab.page.emulate_media(color_scheme=scheme)
    tab.settled()
    dark = scheme == "dark"
    assert dark == (tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 20, 26)")
    assert shortcomings(tab.page) == []
    tab.button("Watch runs").click()
    expect(tab.page.locator("#runs svg.chart")).to_have_count(4)
    assert shortcomings(tab.page) == []


def test_phone_has_no_sideways_scrolling_and_a_finger_draws(browser: Any, page: ServedPage) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    tab = Tab(context, page.address.url)
    tab.settled()
    wide, screen = tab.page.evaluate(WIDTHS)
    assert wide <= screen == 390
    tab.button("Start empty").click()
    pad = tab.card("A").locator("canvas")
    pad.scroll_into_view_if_needed()
    box = pad.bounding_box()
    assert box is not None
    before = tab.page.evaluate("scrollY")
    session = context.new_cdp_session(tab.page)
    for number in range(8):
        x, y = box["x"] + 15 + 8 * number, box["y"] + 15 + 8 * number
        kind = "touchStart" if number == 0 else "touchMove"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    tab.card("A").get_by_role("button", name="Add", exact=True).click()
    expect(tab.card("A").locator("button.thumb")).to_have_count(1)
    assert tab.page.evaluate("scrollY") == before  # the finger drew; it did not scroll
    tab.button("Watch runs").click()
    expect(tab.page.locator("#runs svg.chart")).to_have_count(4)
    wide, screen = tab.page.evaluate(WIDTHS)
    assert wide <= screen
    context.close()
    assert tab.outside == []
    assert tab.complaints == []


def test_everything_with_the_keyboard_alone(tab: Tab) -> None:
    tab.settled()
    press = tab.page.keyboard.press
    tab.button("Start empty").focus()
    press("Enter")
    for name, keys in (
        ("A", ["ArrowRight", "ArrowRight", "ArrowRight"]),
        ("B", ["ArrowDown", "ArrowDown", "ArrowDown"]),
    ):
        tab.page.get_by_label(f"Drawing pad of {name}.").focus()
        for key in (" ", *keys, " ", "Enter"):
            press(key)
        expect(tab.card(name).locator("button.thumb")).to_have_count(1)
    press("Tab")  # from the pad to the name beside it
    expect(tab.card("B").get_by_label("Name of the class")).to_be_focused()
    shadow = "getComputedStyle(document.activeElement).outlineStyle"
    assert tab.page.evaluate(shadow) == "solid"  # the focus is seen
    tab.page.keyboard.type("down")
    press("Enter")
    expect(tab.card("down")).to_have_count(1)  # a name that is tabbed to is selected: typing replaces it
    tab.page.get_by_label("Drawing pad for a question").focus()
    for key in (" ", "ArrowDown", "ArrowDown", " "):
        press(key)
    expect(tab.page.locator("button.question")).to_have_count(1)
    press("Backspace")
    expect(tab.page.locator("button.question")).to_have_count(0)
    for key in (" ", "ArrowDown", "ArrowDown", " ", "Enter"):
        press(key)
    expect(tab.page.locator("button.question")).to_have_count(1)
    tab.settled()
    slider = tab.page.get_by_label("Gradient steps taken")
    slider.focus()
    press("End")
    expect(tab.page.locator(".model .words").first).to_contain_text("after 10 steps")
    press("Home")
    expect(tab.page.locator(".model .words").first).to_contain_text("before the first step")


def test_no_key_is_a_trap(tab: Tab) -> None:
    tab.settled()
    stops = tab.page.locator(
        "button:visible:not(:disabled), a:visible, select:visible, input:visible, canvas:visible, pre:visible"
    ).count()
    tab.page.locator("body").press("Tab")
    expect(tab.page.get_by_text("Skip to the answers")).to_be_focused()
    seen = 1
    for _ in range(stops + 5):
        tab.page.keyboard.press("Tab")
        if tab.page.evaluate("document.activeElement === document.body"):
            break
        seen += 1
    assert abs(seen - stops) <= 2


def test_dead_server_is_a_line_and_the_page_goes_on_when_it_is_back(
    browser: Any, models: Models, runs_folder: Path
) -> None:
    def listening() -> socket.socket:
        return bound("127.0.0.1", port)

    port = 0
    with listening() as first:
        address = Address.of("127.0.0.1", first.getsockname()[1])
        port = address.port
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        with in_background(Page(models, runs_folder), first, address):
            tab = Tab(context, address.url)
            tab.settled()
    banner = tab.page.locator("#server")
    card = tab.card(tab.names()[0])
    tab.draw(card.locator("canvas"), DASH)
    card.get_by_role("button", name="Add", exact=True).click()
    expect(banner).to_contain_text("does not answer")
    expect(card.get_by_role("alert")).to_contain_text("Not added")
    count = card.locator("button.thumb").count()
    card.locator("button.thumb").first.click()  # the page still works
    expect(card.locator("button.thumb")).to_have_count(count - 1)
    with listening() as again, in_background(Page(models, runs_folder), again, address):
        expect(banner).to_be_hidden()
        tab.settled()
        card.get_by_role("button", name="Add", exact=True).click()  # the drawing is still on the pad
        expect(card.locator("button.thumb")).to_have_count(count)
        tab.settled()
        context.close()
    assert tab.outside == []
    assert all("net::ERR" in line for line in tab.complaints)


def test_runs_are_listed_and_compared_by_ticking(tab: Tab) -> None:
    tab.button("Watch runs").click()
    rows = tab.page.locator(".runs li")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("finished, 4 of 4 updates")
    legend = tab.page.locator("#runs .legend span")
    expect(legend).to_have_count(2)
    assert sorted(legend.all_inner_texts()) == ["plain", "shared"]
    curves = tab.page.locator("#runs svg.chart").first.locator("polyline")
    expect(curves).to_have_count(2)
    tab.page.get_by_role("checkbox", name="plain").uncheck()
    expect(legend).to_have_text(["shared"])
    expect(curves).to_have_count(1)
    tab.page.get_by_label("after step", exact=True).select_option("2")
    tab.button("Teach and ask").click()
    expect(tab.page.get_by_role("heading", name="Teach", exact=True)).to_be_visible()
