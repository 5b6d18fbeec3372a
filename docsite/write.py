"""Write the generated files: parts of pages, the reference, the figure of speed."""

from __future__ import annotations

from pathlib import Path

from docsite import speed_figure
from docsite.blocks import filled, pages
from docsite.notebooks import notebooks
from docsite.paths import DOCS
from docsite.public_names import GROUPS
from docsite.reference import FOLDER, page, page_name
from docsite.results import RESULTS
from docsite.tables import GENERATORS
from firststep.paper import page_text, read_results
from firststep.utils.files import write_text


def written() -> dict[Path, str]:
    """Return, by file, what it should hold."""
    files = {FOLDER / page_name(module): page(module) for module in GROUPS}
    files[DOCS / "images" / "speed.svg"] = speed_figure.figure()
    for saved in read_results(RESULTS):
        files[saved.folder / "README.md"] = page_text(saved.record, saved.cells)
    for path in pages():
        if path not in files:
            files[path] = filled(path.read_text("utf-8"), GENERATORS)
    return files | notebooks()


def write() -> list[Path]:
    """Write what differs; the files that were changed."""
    changed = []
    for path, text in written().items():
        if not path.is_file() or path.read_text("utf-8") != text:
            write_text(path, text)
            changed.append(path)
    return changed
