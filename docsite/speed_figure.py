"""The figure of docs/speed.md: time and memory against the fastest peer, from benchmarks/results.json."""

from __future__ import annotations

from docsite.drawing import Drawing
from docsite.speed_tables import compared

LEFT, UNIT, ROW = 190.0, 90.0, 44.0
WIDTH = 760.0


def figure() -> str:
    """Return two bars per setting, as SVG: times as fast as the fastest peer, and peak memory over its."""
    settings = compared()
    drawing = Drawing(WIDTH, 50 + ROW * len(settings), "Speed and memory against the fastest peer")
    drawing.text(
        LEFT,
        20,
        "how many times as fast as the fastest peer (dark), share of its memory (light)",
        anchor="start",
    )
    for number, setting in enumerate(settings):
        y = 34 + ROW * number
        drawing.text(LEFT - 8, y + 19, setting.title, size=11, anchor="end")
        bars = (
            (setting.times_as_fast, f"{setting.times_as_fast:.1f}"),
            (setting.memory_share, f"{setting.memory_share:.2f}"),
        )
        for place, (value, text) in enumerate(bars):
            top = y + 15 * place
            drawing.bar(LEFT, top, UNIT * value, 13, accent=place == 0)
            drawing.text(LEFT + UNIT * value + 6, top + 11, text, size=11, anchor="start")
    drawing.line(LEFT + UNIT, 34 + ROW * len(settings), LEFT + UNIT, 30)
    drawing.text(LEFT + UNIT, 46 + ROW * len(settings), "the peer", size=11)
    return drawing.svg()
