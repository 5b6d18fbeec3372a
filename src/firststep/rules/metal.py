"""MeTAL: the inner loop descends a loss that is learned, and that adapts to the task at every step."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from firststep.losses import first_tensor
from firststep.network import FunctionalModule, Params
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.layers import without_norms
from firststep.rules.registry import register_method
from firststep.rules.rule import Moves, Rule, SupportLoss, build_rule, stepping
from firststep.rules.small_networks import perceptron, perceptron_parameters

EPS = 1e-12  # of the authors' normalisation
LOSS = "loss"


@register_method("metal")
def metal(rate: float | None = DEFAULT_RATE, steps: int = 5, moves: Moves = "all") -> Rule:
    """Return gradient descent on a learned loss (Baik et al., "MeTAL", ICCV 2021).

    Inner step k descends L + mean_i l(state, output_i, target_i), where l is a perceptron Linear-ReLU-Linear
    of its own for each step. ``state`` is L and the mean of every parameter tensor that moves. Before use, a
    second perceptron scales and shifts each of the four tensors of l by what it makes of the state:
    w ← (1 + c m(state)) w + d s(state), with learned c and d that start at 0. Classes are one-hot targets.
    The inputs of both perceptrons are normalised by their own mean and standard deviation.

    This is the inductive part of the method. The authors add a second learned loss of the unlabelled query
    set, for which an inner loop would have to see it. The last layer of l starts at 0 here, so that the first
    step is MAML's. Scales and shifts of normalisation layers do not move, as in the authors' code. Steps
    beyond ``steps`` use the last loss.

    Args:
        rate: α; None leaves the rate and the sign out, for another rule after it:
            ``chain(metal(rate=None), alfa())`` is the authors' ALFA+MeTAL without the query set.
        steps: number of trained inner steps.
        moves: the parameters that move, as in :func:`firststep.maml`.

    Examples:
        >>> rule_params = fs.metal(rate=0.1, steps=2).init(model, model.params())
        >>> rule_params["loss.hidden.weight"].shape, rule_params["adapter.out.weight"].shape
        (torch.Size([2, 21, 21]), torch.Size([2, 8, 11]))
    """
    if steps < 1:
        raise ValueError(f"steps must be at least 1, not {steps}")
    return build_rule(
        "metal",
        partial(_update, rate=stepping(rate)),
        moves,
        init=partial(_init, steps=steps),
        allowed=without_norms,
        per_step=True,
        inner_loss=_inner_loss,
    )


def _init(
    model: FunctionalModule, params: Params, generator: torch.Generator | None = None, *, steps: int
) -> Params:
    if model.head != "per-class":
        raise ValueError(
            "the method metal learns a loss for a fixed number of outputs, so it needs head='per-class', not "
            f"{model.head!r}"
        )
    source = torch.Generator().manual_seed(0) if generator is None else generator
    like = next(iter(params.values()))
    state = 1 + len(params)
    size = state + 2 * model.num_classes
    learned = perceptron_parameters(LOSS, (size, size, 1), like, source, (steps,))
    for kind in ("weight", "bias"):
        learned[f"{LOSS}.out.{kind}"] = torch.zeros_like(learned[f"{LOSS}.out.{kind}"])
    adapter = perceptron_parameters("adapter", (state, state, 2 * len(learned)), like, source, (steps,))
    gates = {name: like.new_zeros(steps, len(learned)) for name in ("scale", "shift")}
    return {**learned, **adapter, **gates}


def _inner_loss(mean_loss: Tensor, support: SupportLoss, params: Params, rule_params: Params) -> Tensor:
    state = torch.stack([mean_loss, *(value.mean() for value in params.values())])
    generated = perceptron("adapter", rule_params, _normalised(state))
    names = [name for name in rule_params if name.startswith(f"{LOSS}.")]
    scales, shifts = generated.chunk(2)
    adapted = {
        name: (1 + rule_params["scale"][i] * scales[i]) * rule_params[name]
        + rule_params["shift"][i] * shifts[i]
        for i, name in enumerate(names)
    }
    output = first_tensor(support.logits)
    pairs = torch.stack([output, _as_numbers(support, output)], -1).flatten(1)
    samples = torch.cat([state.expand(len(output), -1), pairs], 1)
    return mean_loss + perceptron(LOSS, adapted, _normalised(samples)).mean()


def _as_numbers(support: SupportLoss, output: Tensor) -> Tensor:
    """Return the targets in the shape of the output: classes one-hot."""
    target = first_tensor(support.labels)
    if support.loss.kind == "classes":
        return F.one_hot(target, output.shape[-1]).to(output.dtype)
    if output.dim() != 2 or target.shape != output.shape:
        raise ValueError(
            "the method metal needs outputs [n, outputs] and targets of that shape or classes, not "
            f"{list(output.shape)} and {list(target.shape)}"
        )
    return target.to(output.dtype)


def _normalised(values: Tensor) -> Tensor:
    return (values - values.mean()) / (values.std() + EPS)


def _update(grads: Params, params: Params, rule_params: Params, loss: SupportLoss, *, rate: float) -> Params:
    return {name: rate * grad for name, grad in grads.items()}
