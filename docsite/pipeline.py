"""The diagram of the compiler: what becomes of an inner step and its pull-back."""

from __future__ import annotations

from itertools import pairwise

from docsite.drawing import Box, Drawing

COMPILER = "metagradient/compiler"

STAGES: list[tuple[str, str, str]] = [
    ("one inner step", "adaptation/step.py", "θ, support set → θ + update(∇L(θ)), G(θ)"),
    ("record", f"{COMPILER}/trace.py", "the step and its pull-back as one flat graph, on shapes alone"),
    ("rewrite", f"{COMPILER}/rewrite.py", "kernel gradients and rows of J as ordinary convolutions"),
    (
        "pool entry by entry",
        f"{COMPILER}/pooling.py",
        "fused with its neighbours; means over the kept quarter",
    ),
    ("cut in two", f"{COMPILER}/partition.py", "forward saves products, the pull-back redoes pointwise work"),
    ("choose what to store", f"{COMPILER}/materialize.py", "channels innermost; per-channel numbers once"),
    ("compile", f"{COMPILER}/torch_internals.py", "fixed sizes; results kept on disk"),
]
RESULTS = ["forward step", "pull-back", "query gradient"]


def diagram() -> str:
    width, left, step = 580.0, 20.0, 72.0
    drawing = Drawing(width, step * (len(STAGES) + 1) + 40, "From an inner step to three compiled graphs")
    boxes = [Box(left, 16 + step * i, 540, 50, title, (what,)) for i, (title, _, what) in enumerate(STAGES)]
    for above, below in pairwise(boxes):
        drawing.line(above.centre, above.bottom, below.centre, below.y - 2)
    last = boxes[-1]
    for place, title in enumerate(RESULTS):
        box = Box(left + place * 190, 16 + step * len(STAGES) + 14, 160, 34, title, accent=True)
        drawing.curve(last.centre, last.bottom, box.centre, box.y - 2)
        drawing.box(box)
    for box, (_, file, _) in zip(boxes, STAGES, strict=True):
        drawing.box(box)
        drawing.text(box.x + 8, box.y + 13, file, size=9, anchor="start")
    return drawing.svg()
