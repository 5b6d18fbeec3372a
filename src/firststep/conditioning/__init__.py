"""Conditioning of the inner loop: residuals, Gram matrix, eigenvalues, loss, condition number.

Pure functions of tensors that need nothing but torch, for use in any training loop. Notation, as in
Hiller, Harandi and Drummond (NeurIPS 2022): sample i of a support set of n has loss ℓ_i and residual
r_i = sqrt(ℓ_i / n); J is the Jacobian of the residuals with respect to the constrained parameters ψ; the
non-zero eigenvalues of the Gauss-Newton matrix 2 JᵀJ are twice those of the n x n Gram matrix G = J Jᵀ.
"""

from firststep.conditioning.classifier import classifier_gram
from firststep.conditioning.cross_entropy import cross_entropy_residuals
from firststep.conditioning.jacobian import jacobian_gram
from firststep.conditioning.loss import conditioning_loss
from firststep.conditioning.residuals import residuals
from firststep.conditioning.spectrum import (
    condition_number,
    eigenvalues,
    log_condition_number,
    log_eigenvalue_variance,
    numerical_rank,
)

__all__ = [
    "classifier_gram",
    "condition_number",
    "conditioning_loss",
    "cross_entropy_residuals",
    "eigenvalues",
    "jacobian_gram",
    "log_condition_number",
    "log_eigenvalue_variance",
    "numerical_rank",
    "residuals",
]
