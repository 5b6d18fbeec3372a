"""Simple classifiers on fixed features: the baseline for meta-learning, and often the better choice.

Each probe is fitted to labelled features [n, d]. It returns a function from query features [q, d] to class
probabilities [q, classes], in float64. Features are scaled to length one, so Euclidean and cosine distances
give the same order. Labels are 0, 1, 2, ...; classes may have different numbers of samples.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.conditioning import in_float64
from firststep.errors import FirststepError
from firststep.network import FunctionalModule
from firststep.task import Task

Predict = Callable[[Tensor], Tensor]
"""Query features [q, d] → class probabilities [q, classes], each row summing to 1.

Examples:
    >>> from firststep.evaluation import Predict, ridge
    >>> predict: Predict = ridge(torch.randn(10, 32), support_y)
    >>> predict(torch.randn(4, 32)).sum(-1).round().tolist()
    [1.0, 1.0, 1.0, 1.0]
"""


@torch.no_grad()
def nearest_means(features: Tensor, labels: Tensor, *, temperature: float = 0.1) -> Predict:
    """Fit class means: probabilities are the softmax of -½‖query - mean‖² / ``temperature``.

    Examples:
        >>> from firststep.evaluation import nearest_means
        >>> means = torch.eye(5) * 10
        >>> nearest_means(means, torch.arange(5))(means + 0.1).argmax(-1)
        tensor([0, 1, 2, 3, 4])
    """
    _check(features, labels, temperature=temperature)
    support = _unit(features)
    labels = labels.to(support.device)
    means = torch.stack([support[labels == label].mean(0) for label in range(_classes(labels))])

    def predict(query: Tensor) -> Tensor:
        squares = torch.cdist(_unit(query), means).square()
        return (-squares / (2 * temperature)).softmax(1)

    return predict


@torch.no_grad()
def ridge(features: Tensor, labels: Tensor, *, strength: float = 1.0, temperature: float = 0.1) -> Predict:
    """Fit least squares to one-hot targets: minimise Σ_i w_i ‖x_i W + b - y_i‖² + ``strength`` ‖W‖².

    The weights w give every class the same total, n / classes; with equal numbers of samples all are 1.
    Scores lie around 0 to 1, like the targets; probabilities are the softmax of scores / ``temperature``.

    Examples:
        >>> from firststep.evaluation import ridge
        >>> ridge(torch.eye(5), torch.arange(5))(torch.eye(5)).argmax(-1)
        tensor([0, 1, 2, 3, 4])
    """
    _check(features, labels, strength=strength, temperature=temperature)
    support, targets = _unit(features), _one_hot(labels)
    # The optimal b centres the data, which leaves W = Xᵀ (X Xᵀ + strength I)⁻¹ Y: a linear system of n x n,
    # not d x d. Rows of X and Y are scaled by √w.
    labels = labels.to(support.device)
    shares = _class_weights(labels)[labels][:, None]
    centre, bias = (shares * support).mean(0), (shares * targets).mean(0)
    centred = shares.sqrt() * (support - centre)
    gram = centred @ centred.T
    gram.diagonal().add_(strength)
    weights = centred.T @ torch.linalg.solve(gram, shares.sqrt() * (targets - bias))

    def predict(query: Tensor) -> Tensor:
        return (((_unit(query) - centre) @ weights + bias) / temperature).softmax(1)

    return predict


def logistic(features: Tensor, labels: Tensor, *, strength: float = 0.01) -> Predict:
    """Fit multinomial logistic regression: minimise the weighted cross-entropy + ½ ``strength`` ‖W‖².

    The weights are those of :func:`ridge`. b is not penalised. The optimal W is a linear combination of the
    samples, so the problem has n unknowns per class, not d.

    Examples:
        >>> from firststep.evaluation import logistic
        >>> logistic(torch.randn(10, 32), support_y)(torch.randn(4, 32)).shape
        torch.Size([4, 5])
    """
    _check(features, labels, strength=strength)
    support = _unit(features)
    labels = labels.to(support.device)
    centre = support.mean(0)
    # Coordinates in an orthonormal basis of the samples' span keep all inner products and norms.
    basis = torch.linalg.svd(support - centre, full_matrices=False)[2]
    coordinates, classes = (support - centre) @ basis.T, _classes(labels)
    shares = _class_weights(labels)
    weights = torch.zeros(len(basis), classes, dtype=torch.float64, device=support.device)
    bias = torch.zeros(classes, dtype=torch.float64, device=support.device)
    unknowns = [weights.requires_grad_(), bias.requires_grad_()]
    optimiser = torch.optim.LBFGS(
        unknowns, max_iter=500, tolerance_grad=1e-8, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = F.cross_entropy(coordinates @ weights + bias, labels, weight=shares, reduction="sum")
        value = value + 0.5 * strength * weights.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        optimiser.step(loss)
    fitted, offset = basis.T @ weights.detach(), bias.detach()

    @torch.no_grad()
    def predict(query: Tensor) -> Tensor:
        return ((_unit(query) - centre) @ fitted + offset).softmax(1)

    return predict


@torch.no_grad()
def nearest_means_accuracy(network: FunctionalModule, task: Task) -> float:
    """Return the accuracy of :func:`nearest_means` on a task's queries, with the network's features."""
    params = network.params()
    predict = nearest_means(network.features(params, task.support_x), task.support_y)
    found = predict(network.features(params, task.query_x)).argmax(1)
    return (found == task.query_y.to(found.device)).double().mean().item()


def _unit(features: Tensor) -> Tensor:
    return F.normalize(in_float64(features.detach()), dim=1)


def _one_hot(labels: Tensor) -> Tensor:
    return in_float64(F.one_hot(labels, _classes(labels)))


def _class_weights(labels: Tensor) -> Tensor:
    """Return n / (classes · samples of the class) per class."""
    counts = in_float64(labels.bincount())
    return len(labels) / (len(counts) * counts)


def _classes(labels: Tensor) -> int:
    return int(labels.max()) + 1


def _check(features: Tensor, labels: Tensor, **positive: float) -> None:
    if features.ndim != 2 or labels.shape != features.shape[:1] or not len(labels):
        raise FirststepError(
            "a probe takes features [n, d] and labels [n], "
            f"got {list(features.shape)} and {list(labels.shape)}"
        )
    if int(labels.min()) < 0 or len(labels.unique()) != _classes(labels):
        raise FirststepError("a probe takes labels 0, 1, 2, ..., with at least one sample each")
    if not bool(features.isfinite().all()):
        raise FirststepError("a probe takes finite features; check the weights")
    for option, value in positive.items():
        if not 0 < value < float("inf"):
            raise FirststepError(f"`{option}` must be a positive number, got {value}")
