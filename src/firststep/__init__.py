"""firststep: few-shot learners that are good from the first gradient step.

The conditioning loss and the condition number for your own training loop, exact second-order meta-gradients
in memory that does not grow with the number of inner steps, and the networks and update rules of the field.
Importing this needs torch alone; data, training and the command line live in submodules.
"""

from firststep.adaptation import Trajectory, adapt, inner_step, support_gram
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
from firststep.learner import Learner
from firststep.metagradient import Conditioning, MetaGradient, meta_gradient
from firststep.rules import RULES, Rule, anil, boil, build_rule, fomaml, maml
from firststep.task import Task

__version__ = "0.1.0"

__all__ = [
    "BACKBONES",
    "RULES",
    "Conditioning",
    "FirststepError",
    "Learner",
    "MetaGradient",
    "Rule",
    "Task",
    "Trajectory",
    "__version__",
    "adapt",
    "anil",
    "boil",
    "build_backbone",
    "build_rule",
    "classifier_gram",
    "condition_number",
    "conditioning_loss",
    "cross_entropy_residuals",
    "eigenvalues",
    "fomaml",
    "inner_step",
    "jacobian_gram",
    "log_condition_number",
    "log_eigenvalue_variance",
    "maml",
    "meta_gradient",
    "numerical_rank",
    "residuals",
    "support_gram",
]
