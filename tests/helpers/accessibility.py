"""The rules of accessibility that a program can check, on the page as the browser has built it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

_RULES = Path(__file__).with_suffix(".js")


def shortcomings(page: Page) -> list[str]:
    """Return a line per fault of names, references, structure, contrast or size of controls."""
    found: list[str] = page.evaluate(_RULES.read_text().partition("\n")[2])
    return found
