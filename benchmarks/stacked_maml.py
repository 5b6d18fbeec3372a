"""MAML for regression, many trainings at once: seeds and weights γ are one more dimension of every tensor.

A perceptron's operations take microseconds, so a training of its own per seed and γ would spend its time
between operations. Here `vmap` runs all of them, and all tasks of a meta-batch, as one. It is written from
the formulas and shares only the network and the conditioning loss with the library, whose meta-gradient it
must equal (``tests/benchmarks/test_stacked_maml.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import grad, stack_module_state, vmap

from firststep import log_eigenvalue_variance

Params = dict[str, Tensor]
BETAS, EPS = (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class InnerLoop:
    """Adaptation of the stacked perceptrons, which have one output."""

    layers: tuple[str, ...]
    """Names of the linear layers in order."""
    activation: Callable[[Tensor], Tensor]
    rate: float
    offset: float = 0.0
    """Added to the output."""
    adam: bool = False
    rows: Tensor | None = None
    """Numbers of the samples whose residuals count in the Gram matrices; all if None."""

    def forward(
        self, params: Params, x: Tensor, shifts: tuple[Tensor | float, ...] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the output [n, 1] and the layers' inputs; ``shifts`` are added to the pre-activations."""
        inputs: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            inputs.append(x)
            x = x @ params[f"{layer}.weight"].T + params[f"{layer}.bias"]
            if shifts is not None:
                x = x + shifts[number]
            if number < len(self.layers) - 1:
                x = self.activation(x)
        return x + self.offset, inputs

    def mean_loss(self, params: Params, x: Tensor, y: Tensor) -> Tensor:
        return (self.forward(params, x)[0] - y).square().mean()

    def gram(self, params: Params, x: Tensor, subset: str) -> Tensor:
        """Return J Jᵀ of the output / sqrt(n) in the last layer (``cls``) or all parameters, float64.

        Σ over layers of (a_i · a_j + 1) (δ_i · δ_j) / n, a the layer's input and δ the derivative of the
        output by its pre-activation, which is 1 for the last layer.
        """
        x = x if self.rows is None else x[self.rows]
        if subset == "cls":
            features = self.forward(params, x)[1][-1].double()
            return (features @ features.T + 1) / len(x)
        widths = [len(params[f"{layer}.bias"]) for layer in self.layers]
        zeros = tuple(x.new_zeros(len(x), width) for width in widths)

        def summed(shifts: tuple[Tensor, ...]) -> tuple[Tensor, list[Tensor]]:
            output, inputs = self.forward(params, x, shifts)
            return output.sum(), inputs

        deltas, inputs = grad(summed, has_aux=True)(zeros)
        pairs = [(a.double(), d.double()) for a, d in zip(inputs, deltas, strict=True)]
        total: Tensor = sum((a @ a.T + 1) * (d @ d.T) for a, d in pairs)  # type: ignore[assignment]
        return total / len(x)

    def steps(
        self, params: Params, x: Tensor, y: Tensor, steps: int, see: Callable[[Params], Any]
    ) -> tuple[Params, list[Any]]:
        """Return the parameters after the steps, and what ``see`` gives at stages 0..steps-1."""
        seen: list[Any] = []
        first = {name: torch.zeros_like(value) for name, value in params.items()}
        second = dict(first)
        for count in range(1, steps + 1):
            seen.append(see(params))
            grads = grad(self.mean_loss)(params, x, y)
            if self.adam:
                first = {name: BETAS[0] * first[name] + (1 - BETAS[0]) * g for name, g in grads.items()}
                second = {name: BETAS[1] * second[name] + (1 - BETAS[1]) * g**2 for name, g in grads.items()}
                grads = {name: _direction(first[name], second[name], count) for name in grads}
            params = {name: value - self.rate * grads[name] for name, value in params.items()}
        return params, seen


def _direction(first: Tensor, second: Tensor, count: int) -> Tensor:
    corrected = second / (1 - BETAS[1] ** count)
    zero = corrected == 0
    root = corrected.masked_fill(zero, 1.0).sqrt().masked_fill(zero, 0.0)
    return first / (1 - BETAS[0] ** count) / (root + EPS)


def outer_losses(
    loop: InnerLoop, params: Params, tasks: tuple[Tensor, ...], steps: int, subset: str, gammas: Tensor
) -> Tensor:
    """Return the outer loss of each stacked training, [variants]: summed over its tasks.

    Args:
        loop: the inner loop.
        params: stacked, [variants, ...].
        tasks: support_x, support_y, query_x, query_y, each [variants, tasks, n, ...].
        steps: number of inner steps.
        subset: ``cls``, ``all``, or ``none`` for no conditioning.
        gammas: γ of each, [variants].
    """

    def one(theta: Params, x: Tensor, y: Tensor, query_x: Tensor, query_y: Tensor) -> tuple[Tensor, Any]:
        see = (lambda now: None) if subset == "none" else lambda now: loop.gram(now, x, subset)
        adapted, grams = loop.steps(theta, x, y, steps, see)
        return loop.mean_loss(adapted, query_x, query_y), None if subset == "none" else torch.stack(grams)

    if subset == "none":
        query: Tensor = vmap(vmap(lambda *a: one(*a)[0], (None, 0, 0, 0, 0)))(params, *tasks)
        return query.sum(1)
    query, grams = vmap(vmap(one, (None, 0, 0, 0, 0)))(params, *tasks)
    conditioning = log_eigenvalue_variance(grams, check_finite=False).mean(-1)
    return (query + gammas[:, None] * conditioning).sum(1)


def train(
    loop: InnerLoop,
    networks: list[nn.Module],
    draw: Callable[[int], tuple[Tensor, ...]],
    *,
    steps: int,
    subset: str,
    gammas: list[float],
    updates: int,
    outer_rate: float = 1e-3,
    say: Callable[[int, Tensor], None] = lambda update, losses: None,
) -> Params:
    """Return the stacked parameters after the updates; ``draw(update)`` gives the tasks of an update."""
    params, _ = stack_module_state(networks)
    params = {name: value.detach().requires_grad_() for name, value in params.items()}
    optimiser = torch.optim.Adam(list(params.values()), outer_rate)  # elementwise: the trainings stay apart
    for update in range(updates):
        optimiser.zero_grad()
        losses = outer_losses(loop, params, draw(update), steps, subset, torch.tensor(gammas))
        losses.sum().backward()
        optimiser.step()
        say(update, losses.detach())
    return {name: value.detach() for name, value in params.items()}


def measure(
    loop: InnerLoop, params: Params, tasks: tuple[Tensor, ...], steps: int, stages: int
) -> dict[str, Tensor]:
    """Return squared errors of the query set at steps 0..steps, and the Gram matrices of stages 0..stages-1.

    Args:
        loop: the inner loop.
        params: stacked, [variants, ...].
        tasks: the same for all: [tasks, n, ...].
        steps: number of inner steps.
        stages: number of stages whose Gram matrices are kept.

    Returns:
        ``error`` [variants, tasks, steps + 1], ``cls`` and ``all`` [variants, tasks, stages, n, n].
    """

    def one(theta: Params, x: Tensor, y: Tensor, query_x: Tensor, query_y: Tensor) -> dict[str, Tensor]:
        count = 0

        def see(now: Params) -> tuple[Tensor, ...]:
            nonlocal count
            count += 1
            grams = [loop.gram(now, x, each) for each in ("cls", "all")] if count <= stages else []
            return (loop.mean_loss(now, query_x, query_y), *grams)

        last, seen = loop.steps(theta, x, y, steps, see)
        errors = [each[0] for each in seen] + [loop.mean_loss(last, query_x, query_y)]
        found = {"error": torch.stack(errors)}
        for number, name in enumerate(("cls", "all"), 1):
            found[name] = torch.stack([each[number] for each in seen[:stages]])
        return found

    with torch.no_grad():
        return vmap(vmap(one, (None, 0, 0, 0, 0)), (0, None, None, None, None))(params, *tasks)
