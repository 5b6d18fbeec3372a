"""The paper's figures, each drawn from tidy frames of accuracies and training histories.

``FIGURES[name](accuracies, histories, scale, note)`` gives a matplotlib figure that says its scale; ``save``
writes it. Frames may be partial or empty: what is there is drawn, what is missing is named.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from firststep.evaluation.figures import save_figure
from firststep.paper.figures.figure1 import figure1
from firststep.paper.figures.figure2 import figure2
from firststep.paper.figures.figure3 import figure3
from firststep.paper.figures.figure4 import figure4
from firststep.paper.figures.figure5 import figure5
from firststep.paper.figures.look import Draw
from firststep.paper.figures.supplement import supplement

__all__ = ["FIGURES", "Draw", "save"]

FIGURES: dict[str, Draw] = {
    "figure1": figure1,
    "figure2": figure2,
    "figure3": figure3,
    "figure4": figure4,
    "figure5": figure5,
    "supplement": supplement,
}


def save(figure: Figure, path: Path, about: str = "") -> tuple[Path, Path]:
    """Writes ``path`` with .png and .svg put after it, each whole or not at all; returns both.

    ``about`` goes into the files' own description.
    """
    written = (path.with_name(f"{path.name}.png"), path.with_name(f"{path.name}.svg"))
    for each in written:
        save_figure(figure, each, about)
    return written
