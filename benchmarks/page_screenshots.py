"""Pictures of the page for README and docs, taken from a page that this starts itself.

    python benchmarks/page_screenshots.py            # into docs/images/page-*.png

Needs Chromium (``apt-get install chromium``). After a change of the page's looks, take them again and look
at them.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from firststep import page as served

IMAGES = Path(__file__).parents[1] / "docs" / "images"
MODELS = ("builtin:glyphs-maml", "builtin:glyphs-conditioned")
PATIENCE = 300_000
"""Milliseconds; the machine may be busy."""
WIDE, PHONE = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]
LARGEST = 250_000
"""Bytes of a file."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=IMAGES)
    parser.add_argument("--runs", type=Path, help="also take a picture of the runs in this folder")
    asked = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        print("there is no chromium: apt-get install chromium", file=sys.stderr)
        return 2
    expect.set_options(timeout=PATIENCE)
    page = served.Page(served.load_models(MODELS), asked.runs or Path("runs"))
    with served.bound("127.0.0.1", 0) as listening:
        address = served.Address.of("127.0.0.1", listening.getsockname()[1])
        with served.in_background(page, listening, address), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            take_all(browser, address.url, asked.out, asked.runs is not None)
            browser.close()
    return 0


def take_all(browser: Browser, address: str, folder: Path, with_runs: bool) -> None:
    for scheme in ("light", "dark"):
        tab = opened(browser, address, viewport=WIDE, color_scheme=scheme)
        save(tab.screenshot(), folder / f"page-{scheme}.png")
        save(tab.locator("#why").screenshot(), folder / f"page-why-{scheme}.png")
        if with_runs:
            tab.get_by_role("button", name="Watch runs").click()
            expect(tab.locator("#runs svg.chart")).to_have_count(4)
            save(tab.screenshot(), folder / f"page-runs-{scheme}.png")
        tab.context.close()
        phone = opened(browser, address, viewport=PHONE, color_scheme=scheme, device_scale_factor=2)
        phone.locator("#ask .steps").scroll_into_view_if_needed()
        phone.evaluate("document.querySelector('#ask .steps').scrollIntoView({behavior: 'instant'})")
        save(phone.screenshot(), folder / f"page-phone-{scheme}.png")
        phone.context.close()


def opened(browser: Browser, address: str, **options: Any) -> Page:
    """Open the page with the answers of both models to the first episode."""
    tab = browser.new_context(reduced_motion="reduce", **options).new_page()
    tab.goto(address)
    expect(tab.locator(".model[data-status=done]")).to_have_count(len(MODELS))
    return tab


def save(taken: bytes, path: Path) -> None:
    """Save with a palette: a quarter of the bytes at the same look."""
    with Image.open(io.BytesIO(taken)) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path}: {size // 1000} kB")
    if size > LARGEST:
        raise SystemExit(f"{path} is larger than {LARGEST // 1000} kB")


if __name__ == "__main__":
    sys.exit(main())
