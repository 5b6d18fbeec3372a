"""The Gram matrix of a linear classifier in closed form: no per-sample backward pass."""

from __future__ import annotations

from torch import Tensor

from firststep.conditioning._checks import require_classification, require_finite, require_tensor
from firststep.conditioning.residuals import scaled_errors


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
    phi = features.double()
    error = scaled_errors(logits, labels)
    feature_gram = phi @ phi.mT + (1.0 if bias else 0.0)
    return (error @ error.mT) * feature_gram / (4 * n)
