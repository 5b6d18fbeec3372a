"""Update rules: the inner gradient goes in, the step comes out. One file a rule."""

from firststep.rules.gap import gap
from firststep.rules.gauss_newton import gauss_newton
from firststep.rules.gradient_descent import anil, boil, fomaml, maml
from firststep.rules.maml_plus_plus import annealed_query_weights, maml_plus_plus
from firststep.rules.meta_curvature import meta_curvature
from firststep.rules.meta_sgd import meta_sgd
from firststep.rules.modgrad import modgrad
from firststep.rules.rule import Rule, SupportLoss, scaled
from firststep.rules.warp_maml import warp_maml

__all__ = [
    "Rule",
    "SupportLoss",
    "anil",
    "annealed_query_weights",
    "boil",
    "fomaml",
    "gap",
    "gauss_newton",
    "maml",
    "maml_plus_plus",
    "meta_curvature",
    "meta_sgd",
    "modgrad",
    "scaled",
    "warp_maml",
]
