"""The figure of docs/speed.md: time and memory against the fastest peer, from benchmarks/results.json."""

from __future__ import annotations

from html import escape

from docsite.speed_tables import compared

LEFT, UNIT, ROW, WIDTH = 190.0, 90.0, 44.0, 760.0
INK, PAPER, DARK, LIGHT = "#1f2430", "#ffffff", "#3f51b5", "#8a93a6"
FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"


def figure() -> str:
    """Return two bars per setting, as SVG: times as fast as the fastest peer, and peak memory over its."""
    settings = compared()
    bottom = 34 + ROW * len(settings)
    title = "how many times as fast as the fastest peer (dark), share of its memory (light)"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {bottom + 16:g}" width="{WIDTH:g}" '
        f'height="{bottom + 16:g}" role="img" font-family="{FONT}">',
        "<title>Speed and memory against the fastest peer</title>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        _text(LEFT, 20, title, size=13),
    ]
    for number, setting in enumerate(settings):
        top = 34 + ROW * number
        parts.append(_text(LEFT - 8, top + 19, setting.title, anchor="end"))
        parts += _bar(top, setting.times_as_fast, f"{setting.times_as_fast:.1f}", DARK)
        parts += _bar(top + 15, setting.memory_share, f"{setting.memory_share:.2f}", LIGHT)
    parts.append(f'<path d="M{LEFT + UNIT:g} {bottom:g} V30" stroke="{LIGHT}"/>')
    parts.append(_text(LEFT + UNIT, bottom + 12, "the peer", anchor="middle"))
    return "\n".join([*parts, "</svg>\n"])


def _bar(top: float, value: float, label: str, fill: str) -> list[str]:
    bar = f'<rect x="{LEFT:g}" y="{top:g}" width="{UNIT * value:.1f}" height="13" fill="{fill}"/>'
    return [bar, _text(LEFT + UNIT * value + 6, top + 11, label)]


def _text(x: float, y: float, text: str, *, size: int = 11, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {place} fill="{INK}">{escape(text)}</text>'
