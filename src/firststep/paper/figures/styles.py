"""The colour, mark and dashes of every name.

Names differ in colour (Okabe and Ito's palette), mark and dashes, so that colour-blind readers and grey
print tell them apart. Numbers from runs have filled marks, the paper's hollow ones on dotted lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from firststep.evaluation.figures import COLOURS, MARKERS

BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BLACK = COLOURS
GREY = "#7F7F7F"
KNOWN = {
    "conditioned": (BLUE, "o", "-"),
    "maml": (VERMILION, "s", "--"),
    "fomaml": (GREY, ">", "-."),
    "anil": (PINK, "h", "--"),
    "boil": (ORANGE, "*", "-."),
    "maml++": (GREEN, "<", "--"),
    "meta-sgd": (GREEN, "D", "-"),
    "meta-curvature": (PINK, "^", "-."),
    "modgrad": (ORANGE, "v", "-"),
    "warp-maml": (SKY, "P", "--"),
    "gap": (BLACK, "X", "-"),
    # parameter subsets
    "none": (VERMILION, "s", "--"),
    "cls": (BLUE, "o", "-"),
    "emb": (GREEN, "D", "-."),
    "ebn": (PINK, "^", "--"),
    "cls+emb": (ORANGE, "v", "-"),
    "cls+ebn": (SKY, "P", "--"),
    "emb+ebn": (GREY, ">", "-."),
    "cls+emb+ebn": ("#882255", "h", "-"),
    "all": (BLACK, "X", "-."),
}


def line_style(name: str, is_ours: bool = True, others: Sequence[str] = ()) -> dict[str, Any]:
    """Of a method or subset. ``others`` are the names in the figure, to tell unknown ones apart.

    A rival with the conditioning loss looks like the rival, with a black rim.
    """
    plain = name.removesuffix(" + conditioning")
    unknown = [other for other in dict.fromkeys(others) if other not in KNOWN]
    index = unknown.index(name) if name in unknown else 0
    # The marks fall behind the colours by one a round, so that 49 names differ.
    cycled = (COLOURS[(2 + index) % 7], MARKERS[(index + index // 7) % 7], ("-", "--", "-.")[index % 3])
    colour, marker, dashes = KNOWN.get(plain, cycled)
    return {
        "color": colour,
        "marker": marker,
        "linestyle": dashes if is_ours else ":",
        "markerfacecolor": colour if is_ours else "white",
        "markeredgecolor": colour if plain == name else "black",
        "markersize": 4 if is_ours else 4.5,
        "linewidth": 1.4 if is_ours else 1.1,
    }
