"""The inner loop: one step as a pure function, the trajectory of K of them, and the Gram on the way."""

from firststep.adaptation.gram import support_gram
from firststep.adaptation.step import Seen, inner_step
from firststep.adaptation.trajectory import Trajectory, adapt, walk

__all__ = ["Seen", "Trajectory", "adapt", "inner_step", "support_gram", "walk"]
