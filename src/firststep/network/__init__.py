"""A network as a pure function of its parameters, and how its classifier starts."""

from firststep.network.find_layers import CONVOLUTIONS
from firststep.network.functional_module import FunctionalModule, Output, Params

__all__ = ["CONVOLUTIONS", "FunctionalModule", "Output", "Params"]
