"""All that ``import firststep`` offers, loaded at the first use of a name."""

import firststep.functional as functional
from firststep.allocator import keep_freed_memory
from firststep.backbones import BACKBONES, Backbone, build_backbone, warp
from firststep.conditioning import (
    classifier_gram,
    condition_number,
    conditioning_loss,
    cross_entropy_residuals,
    eigenvalues,
    jacobian_gram,
    log_condition_number,
    log_eigenvalue_variance,
    numerical_rank,
    residuals,
    watch,
)
from firststep.errors import FirststepError
from firststep.meta_learner import MetaLearner
from firststep.metagradient import CONDITIONING_LOSSES, Conditioning
from firststep.methods import METHODS, Method, build_method
from firststep.rules import (
    Rule,
    anil,
    annealed_query_weights,
    boil,
    fomaml,
    gap,
    gauss_newton,
    maml,
    maml_plus_plus,
    meta_curvature,
    meta_sgd,
    modgrad,
    warp_maml,
)
from firststep.task import Task

__all__ = [
    "BACKBONES",
    "CONDITIONING_LOSSES",
    "METHODS",
    "Backbone",
    "Conditioning",
    "FirststepError",
    "MetaLearner",
    "Method",
    "Rule",
    "Task",
    "anil",
    "annealed_query_weights",
    "boil",
    "build_backbone",
    "build_method",
    "classifier_gram",
    "condition_number",
    "conditioning_loss",
    "cross_entropy_residuals",
    "eigenvalues",
    "fomaml",
    "functional",
    "gap",
    "gauss_newton",
    "jacobian_gram",
    "keep_freed_memory",
    "log_condition_number",
    "log_eigenvalue_variance",
    "maml",
    "maml_plus_plus",
    "meta_curvature",
    "meta_sgd",
    "modgrad",
    "numerical_rank",
    "residuals",
    "warp",
    "warp_maml",
    "watch",
]
