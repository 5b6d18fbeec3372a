"""The compiler's stages and passes, as a diagram and as a table, from the lists in `compiler/passes.py`."""

from __future__ import annotations

import inspect
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from docsite.drawing import Box, Drawing
from firststep.metagradient.compiler.passes import CLEAN_UP, PREPARE, REWRITE, Pass

COMPILER = "metagradient/compiler"
WIDTH, LINE = 760.0, 16.0


class Stage(NamedTuple):
    title: str
    file: str
    purpose: str = ""
    passes: tuple[Pass, ...] = ()

    def lines(self) -> tuple[str, ...]:
        if not self.passes:
            return (self.purpose,)
        return tuple(f"{one.__name__}: {purpose(one)}".replace("`", "") for one in self.passes)


STAGES = [
    Stage("one inner step", "adaptation/step.py", "θ, support set → θ + update(∇L(θ)), G(θ)"),
    Stage("trace", f"{COMPILER}/trace.py", "The step and its pull-back as one flat graph, on shapes alone."),
    Stage("clean up", f"{COMPILER}/passes.py", passes=CLEAN_UP),
    Stage("rewrite", f"{COMPILER}/passes.py", passes=REWRITE),
    Stage(
        "split", f"{COMPILER}/partition.py", "The pull-back reads saved products and redoes pointwise work."
    ),
    Stage("prepare each part", f"{COMPILER}/passes.py", passes=PREPARE),
    Stage(
        "compile", f"{COMPILER}/torch_internals.py", "Inductor, with fixed sizes; results are cached on disk."
    ),
]
RESULTS = ["forward step", "pull-back", "query gradient"]


def purpose(one: Pass) -> str:
    """Return the first line of a pass's docstring."""
    return inspect.getdoc(one).partition("\n")[0]  # type: ignore[union-attr]


def table() -> str:
    """Return all passes in order, each with its file and purpose."""
    rows = ["| stage | pass | file | purpose |", "|---|---|---|---|"]
    for stage in STAGES:
        for one in stage.passes:
            file = Path(inspect.getfile(one)).name
            rows.append(f"| {stage.title} | `{one.__name__}` | `{file}` | {purpose(one)} |")
    return "\n".join(rows)


def diagram() -> str:
    """Return the stages from an inner step to the compiled graphs, as SVG."""
    boxes: list[Box] = []
    top = 16.0
    for stage in STAGES:
        lines = stage.lines()
        boxes.append(Box(20, top, WIDTH - 40, 34 + LINE * len(lines), stage.title, lines))
        top = boxes[-1].bottom + 22
    drawing = Drawing(WIDTH, top + 50, "From an inner step to three compiled graphs")
    for above, below in pairwise(boxes):
        drawing.line(above.centre, above.bottom, below.centre, below.y - 2)
    last = boxes[-1]
    for place, title in enumerate(RESULTS):
        box = Box(90 + place * 210, top + 6, 160, 34, title, accent=True)
        drawing.curve(last.centre, last.bottom, box.centre, box.y - 2)
        drawing.box(box)
    for box, stage in zip(boxes, STAGES, strict=True):
        drawing.box(box)
        drawing.text(box.x + 8, box.y + 13, stage.file, size=9, anchor="start")
    return drawing.svg()
