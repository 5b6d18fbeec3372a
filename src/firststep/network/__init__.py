"""A network as a pure function of its parameters, and how its classifier starts."""

from firststep.network.find_layers import CONVOLUTIONS
from firststep.network.functional_module import FunctionalModule, Output, Params
from firststep.network.heads import FEWEST_CLASSES, HEADS, set_rows

__all__ = ["CONVOLUTIONS", "FEWEST_CLASSES", "HEADS", "FunctionalModule", "Output", "Params", "set_rows"]
