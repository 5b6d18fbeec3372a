"""Update rules: a rule turns the inner gradient into a step. One file per rule."""

import pkgutil
from importlib import import_module

# isort: off
# The order of these imports is the order of METHODS, hence of help texts and tables.
from firststep.rules.gradient_descent import anil, boil, fomaml, maml
from firststep.rules.meta_sgd import meta_sgd
from firststep.rules.meta_curvature import meta_curvature
from firststep.rules.modgrad import modgrad
from firststep.rules.warp_maml import warp_maml
from firststep.rules.gap import gap
from firststep.rules.maml_plus_plus import maml_plus_plus
from firststep.rules.gauss_newton import gauss_newton
from firststep.rules.momentum import momentum
from firststep.rules.adam import adam, rmsprop
from firststep.rules.alfa import alfa
from firststep.rules.metal import metal
# isort: on

from firststep.rules.compose import chain, clip_by_norm, scaled, stateless, weight_decay
from firststep.rules.method import Method
from firststep.rules.query_weights import QUERY_WEIGHTS, annealed_query_weights, equal_query_weights
from firststep.rules.registry import METHODS, MethodBuilder, build_method, register_method
from firststep.rules.rule import Moves, Rule, SupportLoss, descend, no_parameters, require_rate, require_rule

for _file in pkgutil.iter_modules(__path__):  # a new file needs no other edit
    import_module(f"{__name__}.{_file.name}")

__all__ = [
    "METHODS",
    "QUERY_WEIGHTS",
    "Method",
    "MethodBuilder",
    "Moves",
    "Rule",
    "SupportLoss",
    "adam",
    "alfa",
    "anil",
    "annealed_query_weights",
    "boil",
    "build_method",
    "chain",
    "clip_by_norm",
    "descend",
    "equal_query_weights",
    "fomaml",
    "gap",
    "gauss_newton",
    "maml",
    "maml_plus_plus",
    "meta_curvature",
    "meta_sgd",
    "metal",
    "modgrad",
    "momentum",
    "no_parameters",
    "register_method",
    "require_rate",
    "require_rule",
    "rmsprop",
    "scaled",
    "stateless",
    "warp_maml",
    "weight_decay",
]
