"""The paper's figures, each drawn from tidy frames of accuracies and training histories.

``FIGURES[name](accuracies, histories, scale, note)`` gives a matplotlib figure that says its scale. Frames
may lack numbers or be empty: what is there is drawn, what is missing is named.
"""

from firststep.paper.figures import curves, figure1, points
from firststep.paper.figures.canvas import FIGURES, Draw

__all__ = ["FIGURES", "Draw", "curves", "figure1", "points"]
