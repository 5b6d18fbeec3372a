"""Conditioning of the inner loop: residuals, Gram matrix, eigenvalues, loss, condition number.

Pure functions of tensors that need only torch, for any training loop. The notation follows Hiller, Harandi
and Drummond (NeurIPS 2022). Sample i of a support set of n has loss ℓ_i and residual r_i = sqrt(ℓ_i / n).
J is the Jacobian of the residuals with respect to the constrained parameters ψ. The non-zero eigenvalues of
the Gauss-Newton matrix 2 JᵀJ are twice those of the n x n Gram matrix G = J Jᵀ.
"""

from firststep.conditioning.classifier import classifier_gram, linear_gram, output_gram
from firststep.conditioning.jacobian import JACOBIAN_MEMORY, jacobian_gram
from firststep.conditioning.jacobian_rows import gram_in_graph
from firststep.conditioning.loss import conditioning_loss
from firststep.conditioning.precision import back_to, float64_device, has_float64, in_float64
from firststep.conditioning.registry import CONDITIONING_LOSSES, GramLoss
from firststep.conditioning.residuals import cross_entropy_residuals, residuals, scaled_errors
from firststep.conditioning.saved_memory import counting_saved
from firststep.conditioning.smaller_side import rotation, smaller_gram
from firststep.conditioning.spectrum import (
    condition_number,
    eigenvalues,
    log_condition_number,
    log_eigenvalue_variance,
    numerical_rank,
)
from firststep.conditioning.watch import Watch, watch

__all__ = [
    "CONDITIONING_LOSSES",
    "JACOBIAN_MEMORY",
    "GramLoss",
    "Watch",
    "back_to",
    "classifier_gram",
    "condition_number",
    "conditioning_loss",
    "counting_saved",
    "cross_entropy_residuals",
    "eigenvalues",
    "float64_device",
    "gram_in_graph",
    "has_float64",
    "in_float64",
    "jacobian_gram",
    "linear_gram",
    "log_condition_number",
    "log_eigenvalue_variance",
    "numerical_rank",
    "output_gram",
    "residuals",
    "rotation",
    "scaled_errors",
    "smaller_gram",
    "watch",
]
