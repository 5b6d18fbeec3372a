"""Boxes, bars and arrows as SVG: the same on every machine, with text that can be searched."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

INK, PAPER, LINE, FILL, ACCENT = "#1f2430", "#ffffff", "#8a93a6", "#eef1f8", "#3f51b5"
FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    title: str
    lines: tuple[str, ...] = ()
    accent: bool = False

    @property
    def centre(self) -> float:
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height


@dataclass
class Drawing:
    width: float
    height: float
    title: str
    parts: list[str] = field(default_factory=list)

    def box(self, box: Box) -> None:
        stroke = ACCENT if box.accent else LINE
        self.parts.append(
            f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="6" '
            f'fill="{FILL}" stroke="{stroke}"/>'
        )
        top = box.y + (box.height - 16 * len(box.lines)) / 2 + 5
        self.text(box.centre, top, box.title, bold=True)
        for number, line in enumerate(box.lines, 1):
            self.text(box.centre, top + 16 * number, line, size=11)

    def bar(self, x: float, y: float, width: float, height: float, *, accent: bool = False) -> None:
        size = f'width="{width:g}" height="{height:g}"'
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" {size} fill="{ACCENT if accent else LINE}"/>')

    def text(
        self, x: float, y: float, text: str, *, size: int = 13, bold: bool = False, anchor: str = "middle"
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{INK}"{weight}>'
            f"{escape(text)}</text>"
        )

    def curve(self, x1: float, y1: float, x2: float, y2: float) -> None:
        bend = max(14.0, abs(y2 - y1) / 2)
        self.parts.append(
            f'<path d="M{x1:g} {y1:g} C{x1:g} {y1 + bend:g} {x2:g} {y2 - bend:g} {x2:g} {y2:g}" fill="none" '
            f'stroke="{LINE}" marker-end="url(#head)"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self.parts.append(
            f'<path d="M{x1:g} {y1:g} L{x2:g} {y2:g}" fill="none" stroke="{LINE}" marker-end="url(#head)"/>'
        )

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" role="img" font-family="{FONT}">'
        )
        marker = (
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{LINE}"/></marker></defs>'
        )
        paper = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
        return "\n".join(
            [head, f"<title>{escape(self.title)}</title>", marker, paper, *self.parts, "</svg>\n"]
        )
