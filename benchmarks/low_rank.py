"""Conditioning on all parameters by fewer rows: how far off is the gradient with only r eigenvalues of n?

python benchmarks/low_rank.py

The loss's differential is tr(C dG) with C = Σ c_i v_i v_iᵀ over the eigenvectors of G and c_i = ∂L/∂λ_i. Each
term is one second derivative of a combination of the residuals. The share of a term goes with c_i λ_i, which
is 2/n times how far log λ_i is from the mean: those near it are left out first. Of trained models, tasks of
validation classes; relative errors of the whole gradient, means over the tasks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from firststep import cross_entropy_residuals, jacobian_gram, log_eigenvalue_variance
from firststep.data import Episodes, open_dataset
from firststep.functional import FunctionalModule
from firststep.training import load_trained

MODELS = ("builtin:glyphs-maml", "builtin:glyphs-conditioned")
TASKS = 3
KEPT = (5, 10, 15, 20, 22, 24)


def terms(model: FunctionalModule, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Of each eigenvalue: its share c λ, and its part of the gradient in all parameters."""
    params = {name: value.detach().requires_grad_() for name, value in model.params().items()}
    gram = jacobian_gram(lambda p: cross_entropy_residuals(model(p, images).logits, labels), params)
    values, vectors = torch.linalg.eigh(gram.detach())
    values = values.clone().requires_grad_()
    (slopes,) = torch.autograd.grad(log_eigenvalue_variance(torch.diag(values)), values)
    parts = []
    for slope, vector in zip(slopes, vectors.T, strict=True):
        found = torch.autograd.grad(slope * vector @ gram @ vector, list(params.values()), retain_graph=True)
        parts.append(torch.cat([part.flatten().double() for part in found]))
    return (slopes * values).detach().abs(), torch.stack(parts)


def errors(shares: Tensor, parts: Tensor) -> Tensor:
    """Relative error of the gradient with the r largest shares, r = 1..n."""
    ordered = parts[shares.argsort(descending=True)].cumsum(0)
    return (ordered - ordered[-1]).norm(dim=1) / ordered[-1].norm()


def main() -> None:
    print("| relative error with so many of 25 | " + " | ".join(map(str, KEPT)) + " |")
    print("|---|" + "---|" * len(KEPT))
    for name in MODELS:
        trained = load_trained(name)
        episodes = Episodes(open_dataset("glyphs").split("val"), ways=5, shots=5, seed=0)
        found = []
        for number in range(TASKS):
            images, labels = map(torch.from_numpy, episodes[number][:2])
            found.append(errors(*terms(trained.meta.functional, images, labels)))
        mean = torch.stack(found).mean(0)
        print(f"| {name} | " + " | ".join(f"{mean[kept - 1]:.2f}" for kept in KEPT) + " |", flush=True)


if __name__ == "__main__":
    main()
