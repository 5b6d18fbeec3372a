"""Gauss-Newton: the step that conditioning would make unnecessary, in closed form for the classifier."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from firststep.conditioning import classifier_gram, scaled_errors
from firststep.network import Params
from firststep.rules.rule import Rule, SupportLoss, no_parameters, require_rate

DEFAULT_RATE = 1.0
DAMPING = 0.01  # of the mean eigenvalue
# A damping below this would overflow when something is divided by it.
_SMALLEST = torch.finfo(torch.float64).tiny / torch.finfo(torch.float64).eps


def gauss_newton(rate: float = DEFAULT_RATE) -> Rule:
    """-rate (JᵀJ + λ I)⁻¹ g/2 on the classifier; the body rests, as in ANIL.

    With the support loss as least squares, L = Σ r_i², and J the Jacobian of the residuals by the classifier,
    g/2 = Jᵀ r, and the whole step (``rate`` 1) minimises |r + J δ|² + λ |δ|². The gradient step takes each
    eigendirection of JᵀJ as far as its eigenvalue says; this one takes all of them equally far, as gradient
    descent would if their eigenvalues were equal. So it is the reference for what conditioning can give in
    one step; it costs a linear system of n equations a step, n the size of the support set, because

        (JᵀJ + λ I)⁻¹ g = [g - Jᵀ (G + λ I)⁻¹ J g] / λ     with the n x n Gram matrix G = J Jᵀ,

    and J of a linear classifier is known in closed form. The damping λ is 1 % of the mean eigenvalue tr(G)/n,
    so that what the step does to the logits does not depend on the scale of the features. Directions of
    smaller eigenvalues, which repeated images have at 0, are not taken as far. It has no parameters of its
    own, and the meta-gradient goes through all of it.

    Examples:
        >>> fs.gauss_newton().moving(model)
        ('classifier.weight', 'classifier.bias')
    """
    rate = require_rate(rate)
    return Rule(name="gauss-newton", init=no_parameters, update=partial(_update, rate=rate), moves="cls")


def _update(grads: Params, params: Params, rule_params: Params, loss: SupportLoss, *, rate: float) -> Params:
    weight, *bias = grads  # as the subset cls has them
    features = loss.features.double()
    if bias:
        features = torch.cat([features, features.new_ones(len(features), 1)], 1)
    both = torch.cat([grads[name].double().reshape(len(grads[name]), -1) for name in grads], 1)
    # Row i of J is the matrix errors_i features_iᵀ.
    errors = scaled_errors(loss.logits, loss.labels) / (2 * len(features) ** 0.5)
    gram = classifier_gram(loss.features, loss.logits, loss.labels, bool(bias), check_finite=False)
    damping = (DAMPING * gram.diagonal().mean()).clamp_min(_SMALLEST)
    along = torch.einsum("ic,cd,id->i", errors, both, features)
    damped = gram + damping * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    # solve_ex: what is not finite shows in the step, where training can handle it.
    weights: Tensor = torch.linalg.solve_ex(damped, along).result
    step = -rate / (2 * damping) * (both - (errors * weights[:, None]).T @ features)
    inputs = grads[weight].shape[1]
    steps = {weight: step[:, :inputs]} | dict.fromkeys(bias, step[:, -1])
    return {name: value.to(grads[name].dtype) for name, value in steps.items()}
