"""Gauss-Newton: the damped Gauss-Newton step of the classifier, in closed form."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from firststep.conditioning import back_to, classifier_gram, in_float64, scaled_errors
from firststep.losses import cross_entropy
from firststep.network import FunctionalModule, Params
from firststep.rules.registry import register_method
from firststep.rules.rule import Moves, Rule, SupportLoss, build_rule, require_rate

DEFAULT_RATE = 1.0
DAMPING = 0.01  # relative to the mean eigenvalue
# Division by a smaller damping would overflow.
_SMALLEST = torch.finfo(torch.float64).tiny / torch.finfo(torch.float64).eps


@register_method("gauss-newton")
def gauss_newton(rate: float = DEFAULT_RATE, moves: Moves = "cls") -> Rule:
    """Return the rule -rate (JᵀJ + λ I)⁻¹ g/2 on the classifier; the body does not move, as in ANIL.

    Write the support loss as least squares, L = Σ r_i², with J the Jacobian of the residuals with respect to
    the classifier. Then g/2 = Jᵀ r, and the whole step (``rate`` 1) minimises |r + J δ|² + λ |δ|². A gradient
    step moves along each eigenvector of JᵀJ in proportion to its eigenvalue. This step moves equally far
    along all of them, as gradient descent would if the eigenvalues were equal. So it shows what perfect
    conditioning could give in one step.

    A step solves n linear equations, n the size of the support set, because

        (JᵀJ + λ I)⁻¹ g = [g - Jᵀ (G + λ I)⁻¹ J g] / λ     with the n x n Gram matrix G = J Jᵀ,

    and J of a linear classifier has a closed form. The damping λ is 1 % of the mean eigenvalue tr(G)/n, so
    the change of the logits does not depend on the scale of the features. Directions with eigenvalues below
    λ, such as the zeros of repeated images, move less. The rule has no parameters, and the meta-gradient goes
    through the whole step.

    Examples:
        >>> fs.gauss_newton().moving(model)
        ('classifier.weight', 'classifier.bias')
    """
    update = partial(_update, rate=require_rate(rate))
    return build_rule("gauss-newton", update, moves, allowed=_of_the_classifier)


def _of_the_classifier(model: FunctionalModule, names: tuple[str, ...]) -> tuple[str, ...]:
    classifier = model.subset("cls")
    if classifier[0] not in names or not set(names) <= set(classifier):
        raise ValueError(
            "the method gauss-newton moves the classifier only: use moves='cls', or for its weight alone "
            f"moves=[{classifier[0]!r}]"
        )
    return names


def _update(grads: Params, params: Params, rule_params: Params, loss: SupportLoss, *, rate: float) -> Params:
    weight, *bias = grads  # the order of the subset cls
    if loss.loss is not cross_entropy or loss.features is None:
        raise ValueError(
            "the method gauss-newton is for networks that end in a linear layer, with loss='cross_entropy'"
        )
    features = in_float64(loss.features)
    if bias:
        features = torch.cat([features, features.new_ones(len(features), 1)], 1)
    both = in_float64(torch.cat([grads[name].reshape(len(grads[name]), -1) for name in grads], 1))
    # Row i of J is the matrix errors_i features_iᵀ.
    labels = loss.labels
    assert isinstance(labels, Tensor)
    errors = scaled_errors(loss.logits, labels) / (2 * len(features) ** 0.5)
    gram = classifier_gram(loss.features, loss.logits, labels, bool(bias), check_finite=False)
    damping = (DAMPING * gram.diagonal().mean()).clamp_min(_SMALLEST)
    along = torch.einsum("ic,cd,id->i", errors, both, features)
    damped = gram + damping * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    # solve_ex does not raise: a system that is not finite gives a NaN step, which training handles.
    weights: Tensor = torch.linalg.solve_ex(damped, along).result
    step = -rate / (2 * damping) * (both - (errors * weights[:, None]).T @ features)
    inputs = grads[weight].shape[1]
    steps = {weight: step[:, :inputs]} | dict.fromkeys(bias, step[:, -1])
    return {name: back_to(value, grads[name]) for name, value in steps.items()}
