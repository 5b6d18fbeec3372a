"""The paper's figures, each drawn from tidy frames of accuracies and training histories.

``FIGURES[name](accuracies, histories, scale, note)`` gives a matplotlib figure that says its scale. Frames
may lack numbers or be empty: what is there is drawn, what is missing is named.
"""

from __future__ import annotations

from firststep.paper.figures.canvas import Draw
from firststep.paper.figures.figure1 import figure1
from firststep.paper.figures.figure2 import figure2
from firststep.paper.figures.figure3 import figure3
from firststep.paper.figures.figure4 import figure4
from firststep.paper.figures.figure5 import figure5
from firststep.paper.figures.rivals import rivals
from firststep.paper.figures.subsets import subsets
from firststep.paper.figures.supplement import supplement
from firststep.utils.registry import Registry

__all__ = ["FIGURES", "Draw"]

FIGURES: Registry[Draw] = Registry(
    "figure",
    figure1=figure1,
    figure2=figure2,
    figure3=figure3,
    figure4=figure4,
    figure5=figure5,
    supplement=supplement,
    subsets=subsets,
    rivals=rivals,
)
"""Name → a function that draws a result. Add your own with ``FIGURES.register("name", draw)``.

Examples:
    >>> from firststep.paper import FIGURES
    >>> "figure3" in FIGURES
    True
"""
