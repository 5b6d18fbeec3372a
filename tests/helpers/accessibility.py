"""The rules of accessibility that a program can check, on the page as the browser has built it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

_NAMES = """() => {
    const visible = (element) => element.checkVisibility();
    const nameOf = (element) =>
        (element.getAttribute("aria-label") ?? "").trim() ||
        (element.labels?.[0]?.textContent ?? "").trim() ||
        (element.textContent ?? "").trim() || (element.getAttribute("title") ?? "").trim();
    const wrong = [];
    for (const element of document.querySelectorAll("button, a, input, select, canvas, progress, [tabindex]")) {
        if (visible(element) && !nameOf(element) && element.tabIndex >= 0) wrong.push(`no name: ${element.outerHTML.slice(0, 120)}`);
    }
    for (const element of document.querySelectorAll("img")) {
        if (!element.hasAttribute("alt")) wrong.push(`no alt: ${element.outerHTML.slice(0, 120)}`);
    }
    for (const element of document.querySelectorAll("svg")) {
        const isHidden = element.closest("[aria-hidden=true]") !== null;
        if (visible(element) && !isHidden && !(element.getAttribute("aria-label") ?? "").trim()) {
            wrong.push(`a drawing without words: ${element.outerHTML.slice(0, 120)}`);
        }
    }
    const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
    for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`twice: ${id}`);
    for (const attribute of ["aria-labelledby", "aria-describedby", "for"]) {
        for (const element of document.querySelectorAll(`[${attribute}]`)) {
            if (!document.getElementById(element.getAttribute(attribute))) wrong.push(`${attribute} of nothing`);
        }
    }
    return wrong;
}"""

_STRUCTURE = """() => {
    const visible = (element) => element.checkVisibility();
    const wrong = [];
    let last = 0;
    for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
        if (!visible(heading)) continue;
        const level = Number(heading.tagName[1]);
        if (level > last + 1) wrong.push(`h${level} after h${last}: ${heading.textContent}`);
        last = level;
    }
    const count = (selector) => [...document.querySelectorAll(selector)].filter(visible).length;
    if (count("h1") !== 1) wrong.push(`${count("h1")} h1`);
    if (count("main") !== 1) wrong.push(`${count("main")} main`);
    if (count("header") !== 1 || count("footer") !== 1) wrong.push("header or footer");
    if (!document.documentElement.lang) wrong.push("no language");
    for (const list of document.querySelectorAll("ul")) {
        if ([...list.children].some((child) => child.tagName !== "LI")) wrong.push("a list of other things");
    }
    return wrong;
}"""

_CONTRAST = """() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const numbers = (colour) => {  // whatever way it is written
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return { rgb: [r, g, b], alpha: a / 255 };
    };
    const behind = (element) => {
        for (let each = element; each; each = each.parentElement) {
            const { rgb, alpha } = numbers(getComputedStyle(each).backgroundColor);
            if (alpha > 0.99) return rgb;
        }
        return [255, 255, 255];
    };
    const light = (rgb) => {
        const [r, g, b] = rgb.map((value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const wrong = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.textContent.trim() || !element.checkVisibility({ opacityProperty: true })) continue;
        if (element.closest(":disabled, noscript, title, option, .hidden")) continue;
        const style = getComputedStyle(element);
        const isDrawn = element.namespaceURI.endsWith("svg");
        const front = light(numbers(isDrawn ? style.fill : style.color).rgb);
        const back = light(behind(element));
        const ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
        const size = parseFloat(style.fontSize);
        const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        if (ratio < (isLarge ? 3 : 4.5)) wrong.push(`${ratio.toFixed(2)}: ${element.className.baseVal ?? element.className} ${walker.currentNode.textContent.trim().slice(0, 40)}`);
    }
    return wrong;
}"""

_TARGETS = """() => [...document.querySelectorAll("button, select, input:not([type=checkbox])")]
    .filter((element) => element.checkVisibility())
    .map((element) => [element, element.getBoundingClientRect()])
    .filter(([, box]) => Math.min(box.width, box.height) < 24)
    .map(([element, box]) => `${box.width}×${box.height}: ${element.outerHTML.slice(0, 100)}`)"""


def shortcomings(page: Page) -> list[str]:
    """WCAG 2.2 AA, as far as it can be computed: names, structure, contrast, size of what is pressed."""
    return [line for check in (_NAMES, _STRUCTURE, _CONTRAST, _TARGETS) for line in page.evaluate(check)]
