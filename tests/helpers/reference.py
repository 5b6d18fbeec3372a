"""Slow, independent references in plain autograd: dense Jacobians and an unrolled inner loop.

Nothing here calls firststep's own mathematics, so that agreement means something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

Params = dict[str, Tensor]

# (gradients, moving parameters, the rule's rule_params, step from 0, support loss) → the moved parameters
Formula = Callable[[Params, Params, Params, int, "SupportLoss"], Params]


def _arguments(inputs: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return inputs if isinstance(inputs, tuple) else (inputs,)


def naive_residuals(logits: Tensor, labels: Tensor) -> Tensor:
    return (F.cross_entropy(logits, labels, reduction="none") / len(labels)).sqrt()


class SupportLoss:
    """The mean loss of a support set as a function of some parameters, and its residuals."""

    def __init__(self, logits: Callable[[Params], Tensor], labels: Tensor) -> None:
        self.logits, self.labels = logits, labels

    def __call__(self, values: Params) -> Tensor:
        return F.cross_entropy(self.logits(values), self.labels)

    def residuals(self, values: Params) -> Tensor:
        return naive_residuals(self.logits(values), self.labels)


def dense_jacobian(residuals: Callable[[Params], Tensor], params: Params, psi: Sequence[str]) -> Tensor:
    """Compute one backward pass per residual, all of it held, differentiable."""
    # Partial derivatives at this point: a parameter that did not move is also an ancestor of those that did,
    # through the earlier steps, and that path must not count. So differentiate by fresh copies.
    params = {name: value.clone() for name, value in params.items()}
    leaves = [params[name] for name in psi]
    rows = []
    for entry in residuals(params):
        grads = torch.autograd.grad(entry, leaves, create_graph=True, allow_unused=True)
        rows.append(
            torch.cat(
                [
                    torch.zeros(p.numel(), dtype=p.dtype) if g is None else g.reshape(-1)
                    for g, p in zip(grads, leaves, strict=True)
                ]
            )
        )
    return torch.stack(rows)


def dense_gram(residuals: Callable[[Params], Tensor], params: Params, psi: Sequence[str]) -> Tensor:
    """Return J Jᵀ with the dense J."""
    jacobian = dense_jacobian(residuals, params, psi)
    return jacobian @ jacobian.T


def log_variance(gram: Tensor) -> Tensor:
    """Return Var(log10 λ) for a matrix of full rank."""
    return torch.linalg.eigvalsh(gram).log10().var(correction=0)


def unrolled_meta_gradient(
    module: nn.Module,
    task: tuple[Any, Tensor, Any, Tensor],
    formula: Formula,
    rule_params: Params,
    *,
    steps: int,
    moving: Sequence[str],
    psi: Sequence[str],
    gamma: float,
    first_order: bool = False,
    conditioning_loss: Callable[[Tensor], Tensor] = log_variance,
    step_weights: Sequence[float] | None = None,
    query_weights: Sequence[float] | None = None,
) -> tuple[Tensor, Params, Params]:
    """Return the outer loss of one task and its gradients by θ and the rule's parameters, for any rule."""
    support, support_y, query, query_y = task
    start = {name: p.detach().clone().requires_grad_() for name, p in module.named_parameters()}
    rule_params = {name: value.detach().clone().requires_grad_() for name, value in rule_params.items()}
    weights = step_weights or [1 / steps] * steps
    query_weights = query_weights or [0.0] * (steps - 1) + [1.0]

    def mean_loss(values: Params, images: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(functional_call(module, values, _arguments(images)), labels)

    theta, total = dict(start), torch.zeros((), dtype=torch.float64)
    for k in range(steps):
        if gamma:
            gram = dense_gram(
                lambda p: naive_residuals(functional_call(module, p, _arguments(support)), support_y),
                theta,
                psi,
            )
            total = total + gamma * weights[k] * conditioning_loss(gram)
        loss = mean_loss(theta, support, support_y)
        grads = torch.autograd.grad(loss, [theta[name] for name in moving], create_graph=True)
        if first_order:
            grads = tuple(grad.detach() for grad in grads)
        before = theta
        moved = formula(
            dict(zip(moving, grads, strict=True)),
            {name: before[name] for name in moving},
            rule_params,
            k,
            SupportLoss(
                lambda values, before=before: functional_call(  # type: ignore[misc]
                    module, before | values, _arguments(support)
                ),
                support_y,
            ),
        )
        assert moved.keys() == set(moving)
        theta = before | moved
        total = total + query_weights[k] * mean_loss(theta, query, query_y)
    leaves = [*start.values(), *rule_params.values()]
    grads = torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
    return (
        total.detach(),
        dict(zip(start, grads, strict=False)),
        dict(zip(rule_params, grads[len(start) :], strict=True)),
    )


def relative_error(got: Tensor, expected: Tensor) -> float:
    return ((got - expected).norm() / expected.norm().clamp_min(1e-12)).item()


def total_error(got: Params, expected: Params) -> float:
    """Return the relative error of all gradients as one vector, which entries of exactly 0 do not distort."""
    assert got.keys() == expected.keys()
    if not expected:
        return 0.0
    difference = torch.cat([(got[name] - expected[name]).reshape(-1) for name in expected])
    return (difference.norm() / torch.cat([e.reshape(-1) for e in expected.values()]).norm()).item()
