"""The named methods: an update rule, how it prepares the network, and its weights of the query losses."""

from firststep.methods.count import ParameterCounts, count_parameters
from firststep.rules import METHODS, Method, MethodBuilder, build_method

__all__ = ["METHODS", "Method", "MethodBuilder", "ParameterCounts", "build_method", "count_parameters"]
