"""A network as a pure function of its parameters, and the initial classifier of a task."""

from firststep.network.find_layers import CONVOLUTIONS
from firststep.network.footprint import Footprint, footprint
from firststep.network.functional_module import FunctionalModule, Output, Params
from firststep.network.heads import FEWEST_CLASSES, HEADS, ONE_ROW, set_rows
from firststep.network.interface import as_arguments
from firststep.network.observation import layer_with_operation
from firststep.network.precision import PRECISIONS, check_precision, network_dtype, networks_in
from firststep.network.randomness import RANDOMNESS, preserved
from firststep.network.second_derivatives import missing_derivative, twice_differentiable
from firststep.network.task_threads import Replicas, Sharing, in_order, share_threads, using_threads

__all__ = [
    "CONVOLUTIONS",
    "FEWEST_CLASSES",
    "HEADS",
    "ONE_ROW",
    "PRECISIONS",
    "RANDOMNESS",
    "Footprint",
    "FunctionalModule",
    "Output",
    "Params",
    "Replicas",
    "Sharing",
    "as_arguments",
    "check_precision",
    "footprint",
    "in_order",
    "layer_with_operation",
    "missing_derivative",
    "network_dtype",
    "networks_in",
    "preserved",
    "set_rows",
    "share_threads",
    "twice_differentiable",
    "using_threads",
]
