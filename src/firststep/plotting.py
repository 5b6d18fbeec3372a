"""One style for all figures: a method keeps its colour, marker and dashes wherever it is drawn.

Names differ in colour (Okabe and Ito's palette), marker and dashes, so that colour-blind readers and readers
of grey print can tell them apart.
"""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from firststep.errors import FirststepError
from firststep.utils.files import replacing

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
DASHES = ("-", "--", "-.")
BLUE, VERMILION, GREEN, PINK, ORANGE, SKY, BLACK = PALETTE
GREY = "#7F7F7F"
CONDITIONED = " + conditioning"
"""Suffix of methods that were trained with the conditioning loss."""
STYLES = {
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
    "gauss-newton": (GREY, "p", "-"),
    "maml, shared head": (GREEN, "d", "-"),
    "maml, zero head": (PINK, "8", "--"),
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
"""Colour, marker and dashes of every known method and parameter subset."""
RC: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "font.size": 9,
    "legend.frameon": False,
}
"""Matplotlib settings of every figure: light frames and grids that leave the eye to the data."""
RESOLUTION = 200
FIGURE_ENDINGS = (".png", ".svg", ".pdf")


def line_style(name: str, others: Sequence[str] = (), hollow: bool = False) -> dict[str, Any]:
    """Return the keyword arguments of ``Axes.plot`` for a method or parameter subset.

    A method with the conditioning loss looks like the method, with a black edge; MAML with it is the paper's
    own method and has a colour of its own.

    Args:
        name: ``maml``, ``gap + conditioning``, ``cls``, ...
        others: all names of the figure, to tell apart those that have no style of their own.
        hollow: whether these are the paper's numbers, which have hollow markers on dotted lines.
    """
    known = "conditioned" if name == f"maml{CONDITIONED}" else name.removesuffix(CONDITIONED)
    colour, marker, dashes = STYLES[known] if known in STYLES else _unknown(name, others)
    has_edge = name.endswith(CONDITIONED) and known != "conditioned"
    return {
        "color": colour,
        "marker": marker,
        "linestyle": ":" if hollow else dashes,
        "markerfacecolor": "white" if hollow else colour,
        "markeredgecolor": "black" if has_edge else colour,
        "markersize": 4.5 if hollow else 4,
        "linewidth": 1.1 if hollow else 1.4,
    }


def line_styles(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return a style per name; a repeated name keeps its colour and gets other dashes."""
    styles = []
    earlier: Counter[str] = Counter()
    for name in names:
        style = line_style(name, names)
        dashes = DASHES[(DASHES.index(style["linestyle"]) + earlier[name]) % len(DASHES)]
        fill = "white" if earlier[name] else style["markerfacecolor"]
        styles.append({**style, "linestyle": dashes, "markerfacecolor": fill})
        earlier[name] += 1
    return styles


def _unknown(name: str, others: Sequence[str]) -> tuple[str, str, str]:
    """Return a style for a name without one; markers and colours cycle so that 49 names differ."""
    unknown = [other for other in dict.fromkeys(others) if other not in STYLES]
    index = unknown.index(name) if name in unknown else 0
    size = len(PALETTE)
    return PALETTE[(2 + index) % size], MARKERS[(index + index // size) % size], DASHES[index % len(DASHES)]


def step_axis(axes: Axes, steps: Sequence[int]) -> None:
    """Set a tick at each step (ascending); beyond ten steps, 0..5 and 5..100 have equal width."""
    if steps[-1] > 10:
        axes.set_xscale("symlog", linthresh=5)
    axes.set_xticks(steps, [str(step) for step in steps])
    axes.minorticks_off()


def save_figure(figure: Figure, path: Path, about: str = "") -> None:
    """Write PNG, SVG or PDF by the ending: whole or not at all, and the same bytes for the same figure.

    Args:
        figure: what to write.
        path: of the file.
        about: description, kept inside the file.
    """
    kind = path.suffix.lower().lstrip(".")
    if f".{kind}" not in FIGURE_ENDINGS:
        raise FirststepError(f"cannot draw {path}: its name must end in {' or '.join(FIGURE_ENDINGS)}")
    with replacing(path) as temporary:
        if kind == "png":
            temporary.write_bytes(_png(figure, about))
            return
        undated: dict[str, str | None] = {"Date" if kind == "svg" else "CreationDate": None}
        if about:
            undated["Description" if kind == "svg" else "Subject"] = about
        # The parts of an SVG have names; the salt makes them repeatable.
        with mpl.rc_context({"svg.hashsalt": "firststep"}):
            figure.savefig(temporary, format=kind, dpi=RESOLUTION, metadata=undated)


def _png(figure: Figure, about: str = "") -> bytes:
    """Return a PNG with a palette of 256 colours: a third of the bytes, and the same to the eye."""
    drawn, content = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=RESOLUTION)
    texts = PngInfo()
    if about:
        texts.add_itxt("Description", about)
    palette = Image.open(drawn).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1)
    palette.save(content, "png", optimize=True, dpi=(RESOLUTION, RESOLUTION), pnginfo=texts)
    return content.getvalue()


def embed_figure(figure: Figure) -> str:
    """Return the figure as an <img> that needs no other file."""
    return embed_png(_png(figure), "figure")


def embed_png(content: bytes, alt: str) -> str:
    """Return a PNG file as an <img>; ``alt`` must be escaped."""
    return f'<img alt="{alt}" src="data:image/png;base64,{base64.b64encode(content).decode()}">'
