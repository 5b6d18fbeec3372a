"""Plain references for any loss: formulas of their own, dense Jacobians, an unrolled inner loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from reference import Params, dense_jacobian


def _softmax_cross_entropy(z: Tensor, y: Tensor) -> Tensor:
    return torch.stack([-(row - row.logsumexp(0))[label] for row, label in zip(z, y, strict=True)])


def _tokens(z: Tensor, y: Tensor) -> Tensor:
    losses = []
    for rows, labels in zip(z, y, strict=True):
        of_token = [-(r - r.logsumexp(0))[label] for r, label in zip(rows, labels, strict=True) if label >= 0]
        losses.append(torch.stack(of_token).mean() if of_token else rows.sum() * 0)
    return torch.stack(losses)


def _binary(z: Tensor, y: Tensor) -> Tensor:
    p = torch.sigmoid(z)
    return -(y * p.log() + (1 - y) * (1 - p).log()).sum(1)


def _huber(z: Tensor, y: Tensor) -> Tensor:
    e = (z - y).abs()
    return torch.where(e <= 1, e**2 / 2, e - 0.5).sum(1)


FORMULAS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cross_entropy": _softmax_cross_entropy,
    "token_cross_entropy": _tokens,
    "binary_cross_entropy": _binary,
    "squared_error": lambda z, y: ((z - y) ** 2).sum(1),
    "absolute_error": lambda z, y: (z - y).abs().sum(1),
    "huber": _huber,
    "poisson": lambda z, y: (z.exp() - y * z - y + torch.special.xlogy(y, y)).sum(1),
}


class Tagger(nn.Module):
    """[n, tokens, inputs] → [n, tokens, outputs]; the last linear layer sees tokens, not samples."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(inputs, 4), nn.Linear(4, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.tanh(self.hidden(x)))


def network(name: str, inputs: int = 3, outputs: int = 2) -> nn.Module:
    torch.manual_seed(3)
    if name == "token_cross_entropy":
        return Tagger(inputs, outputs).double()
    return nn.Sequential(nn.Linear(inputs, 4), nn.Tanh(), nn.Linear(4, outputs)).double()


def task(name: str, n: int = 4, inputs: int = 3, outputs: int = 2, seed: int = 0) -> tuple[Any, ...]:
    """Return a support set of n samples and a query set of n + 1."""
    g = torch.Generator().manual_seed(seed)

    def half(count: int) -> tuple[Tensor, Tensor]:
        shape = (count, 5, inputs) if name == "token_cross_entropy" else (count, inputs)
        x = torch.randn(shape, generator=g, dtype=torch.float64)
        if name == "cross_entropy":
            return x, torch.randint(outputs, (count,), generator=g)
        if name == "token_cross_entropy":
            labels = torch.randint(outputs, (count, 5), generator=g)
            labels[:, -1] = -100
            return x, labels
        if name == "binary_cross_entropy":
            return x, torch.randint(2, (count, outputs), generator=g).double()
        if name == "poisson":
            return x, torch.randint(4, (count, outputs), generator=g).double()
        return x, torch.randn(count, outputs, generator=g, dtype=torch.float64)

    return (*half(n), *half(n + 1))


def residual_vector(name: str, z: Tensor, y: Tensor, kind: str) -> Tensor:
    if kind == "outputs":
        return (z - y).reshape(-1) / len(y) ** 0.5
    return (FORMULAS[name](z, y) / len(y)).sqrt()


def log_variance_of_non_zero(jacobian: Tensor) -> Tensor:
    """Return Var(log10 λ) over the min(n, p) eigenvalues of a full-rank Jacobian."""
    small = jacobian @ jacobian.T if len(jacobian) <= jacobian.shape[1] else jacobian.T @ jacobian
    return torch.linalg.eigvalsh(small).log10().var(correction=0)


def outer_loss_and_gradient(
    module: nn.Module,
    data: tuple[Any, ...],
    name: str,
    *,
    psi: list[str],
    steps: int,
    rate: float,
    gamma: float,
    kind: str,
    query: str | None = None,
) -> tuple[Tensor, Params]:
    x, y, xq, yq = data
    start = {n: p.detach().clone().requires_grad_() for n, p in module.named_parameters()}
    theta, total = dict(start), torch.zeros((), dtype=torch.float64)
    for _ in range(steps):
        if gamma:
            jacobian = dense_jacobian(
                lambda p: residual_vector(name, functional_call(module, p, (x,)), y, kind), theta, psi
            )
            total = total + gamma / steps * log_variance_of_non_zero(jacobian)
        loss = FORMULAS[name](functional_call(module, theta, (x,)), y).mean()
        grads = torch.autograd.grad(loss, list(theta.values()), create_graph=True)
        theta = {n: p - rate * g for (n, p), g in zip(theta.items(), grads, strict=True)}
    total = total + FORMULAS[query or name](functional_call(module, theta, (xq,)), yq).mean()
    grads = torch.autograd.grad(total, list(start.values()), allow_unused=True, materialize_grads=True)
    return total.detach(), dict(zip(start, grads, strict=True))
