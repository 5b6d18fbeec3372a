"""firststep: few-shot learners that are good from the first gradient step.

The conditioning loss and the condition number for your own training loop, exact second-order meta-gradients
in memory that does not grow with the number of inner steps, and the networks and update rules of the field.
Importing this needs torch alone; data, training and the command line live in submodules.
"""

from firststep.adaptation import Trajectory, adapt, inner_step, support_gram
from firststep.allocator import keep_freed_memory
from firststep.backbones import BACKBONES, build_backbone
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
)
from firststep.errors import FirststepError
from firststep.metagradient import Conditioning, MetaGradient, meta_gradient
from firststep.network import FunctionalModule
from firststep.rules import (
    METHODS,
    Method,
    Rule,
    anil,
    annealed_query_weights,
    boil,
    build_method,
    fomaml,
    gap,
    maml,
    maml_plus_plus,
    meta_curvature,
    meta_sgd,
    modgrad,
    warp_maml,
)
from firststep.task import Task

__version__ = "0.1.0"

__all__ = [
    "BACKBONES",
    "METHODS",
    "Conditioning",
    "FirststepError",
    "FunctionalModule",
    "MetaGradient",
    "Method",
    "Rule",
    "Task",
    "Trajectory",
    "__version__",
    "adapt",
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
    "gap",
    "inner_step",
    "jacobian_gram",
    "keep_freed_memory",
    "log_condition_number",
    "log_eigenvalue_variance",
    "maml",
    "maml_plus_plus",
    "meta_curvature",
    "meta_gradient",
    "meta_sgd",
    "modgrad",
    "numerical_rank",
    "residuals",
    "support_gram",
    "warp_maml",
]
