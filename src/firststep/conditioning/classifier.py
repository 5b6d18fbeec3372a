"""The Gram matrix of a linear last layer in closed form: no per-sample backward pass."""

from __future__ import annotations

import torch
from torch import Tensor

from firststep.conditioning._checks import require_classification, require_finite, require_tensor
from firststep.conditioning.precision import in_float64
from firststep.conditioning.residuals import scaled_errors
from firststep.conditioning.smaller_side import smaller_gram


def classifier_gram(
    features: Tensor, logits: Tensor, labels: Tensor, bias: bool = True, *, check_finite: bool = True
) -> Tensor:
    """Return G = J Jᵀ for ψ = weight and bias of a linear softmax classifier, float64 [..., n, n].

    With logits z_i = W φ_i + b and e_i = softmax(z_i) - onehot(y_i),

        ∂r_i/∂W = e_i φ_iᵀ / (2 sqrt(n ℓ_i)),     ∂r_i/∂b = e_i / (2 sqrt(n ℓ_i)),
        G_ij = (e_i · e_j) (φ_i · φ_j + 1) / (4 n sqrt(ℓ_i ℓ_j)),

    so G is the elementwise product of two n x n Gram matrices. It is a plain torch expression: its gradient
    reaches every parameter that formed the features.

    Args:
        features: the classifier's input, [..., n, d].
        logits: the classifier's output, [..., n, classes].
        labels: integers [..., n].
        bias: whether the classifier's bias belongs to ψ (the +1 in the formula).
        check_finite: refuse NaN, infinities and labels out of range. Reading the values makes a GPU wait.
            Nothing is refused inside ``torch.vmap``, where values cannot be read.

    Examples:
        >>> features = torch.randn(10, 32)
        >>> logits = torch.nn.Linear(32, 5)(features)
        >>> gram = fs.classifier_gram(features, logits, support_y)
        >>> gram.shape, gram.dtype
        (torch.Size([10, 10]), torch.float64)
    """
    require_classification(logits, labels, check_finite)
    require_tensor("features", features, 2, "[..., n, d]")
    if features.shape[:-1] != logits.shape[:-1]:
        raise ValueError(
            f"features and logits must agree in all but the last dimension, not {tuple(features.shape)} "
            f"and {tuple(logits.shape)}"
        )
    if check_finite:
        require_finite("features", features)
    n = logits.shape[-2]
    phi = in_float64(features)
    error = scaled_errors(logits, labels)
    feature_gram = phi @ phi.mT + (1.0 if bias else 0.0)
    return (error @ error.mT) * feature_gram / (4 * n)


def linear_gram(features: Tensor, scaled_errors: Tensor, bias: bool = True, *, small: bool = True) -> Tensor:
    """Return the Gram matrix of a linear last layer for any loss, from e_i / sqrt(ℓ_i); float64.

    G_ij = (e_i · e_j) (φ_i · φ_j + 1) / (4 n sqrt(ℓ_i ℓ_j)) as in :func:`classifier_gram`, with
    e_i = ∂ℓ_i/∂z_i. If the samples outnumber the parameters, the result is JᵀJ instead: see
    :mod:`firststep.conditioning.smaller_side`.

    Args:
        features: the layer's input, [n, d].
        scaled_errors: e_i / sqrt(ℓ_i), [n, outputs].
        bias: whether the layer's bias belongs to ψ.
        small: whether the smaller of J Jᵀ and JᵀJ is returned; otherwise J Jᵀ.
    """
    phi, error = in_float64(features), in_float64(scaled_errors)
    n = len(phi)
    if small and n > error.shape[1] * (phi.shape[1] + bias):
        jacobian = error.unsqueeze(2) * _with_bias(phi, bias).unsqueeze(1) / (2 * n**0.5)
        return smaller_gram(jacobian.flatten(1))
    feature_gram = phi @ phi.mT + (1.0 if bias else 0.0)
    return (error @ error.mT) * feature_gram / (4 * n)


def output_gram(features: Tensor, outputs: int, bias: bool = True, *, small: bool = True) -> Tensor:
    """Return the Gram matrix of a linear last layer for the residuals of squared error; float64.

    The residuals are the errors of the outputs, r_ij = (f_j(x_i) - y_ij) / sqrt(n). Their Gram matrix is
    the empirical tangent kernel (Φ Φᵀ + 1)/n ⊗ I, which does not depend on the targets. If the samples
    outnumber the features, the result is the Kronecker product of the smaller Φᵀ Φ / n with I.

    Args:
        features: the layer's input, [n, d].
        outputs: number of outputs.
        bias: whether the layer's bias belongs to ψ.
        small: as in :func:`linear_gram`.
    """
    phi = _with_bias(in_float64(features), bias) / len(features) ** 0.5
    gram = smaller_gram(phi) if small and len(phi) > phi.shape[1] else phi @ phi.mT
    identity = torch.eye(outputs, dtype=gram.dtype, device=gram.device)
    return gram if outputs == 1 else torch.kron(gram, identity)


def _with_bias(phi: Tensor, bias: bool) -> Tensor:
    return torch.cat([phi, phi.new_ones(len(phi), 1)], 1) if bias else phi
