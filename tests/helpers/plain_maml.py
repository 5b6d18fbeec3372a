"""MAML with conditioning by hand, for any network: plain autograd, dense Jacobians, textbook operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from firststep import Task
from reference import Params, dense_gram, log_variance, naive_residuals


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    assert dropout_p == 0
    assert not is_causal
    assert not enable_gqa
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if attn_mask is not None:
        mask = attn_mask
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1) @ value


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return (input / 6 + 0.5).clamp(0, 1)


def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, *rest: Any) -> Tensor:
    """Compute bag by bag; ``rest`` are further arguments of torch's function."""
    _, _, _, mode, _, per_sample_weights, include_last_offset, padding_idx = rest
    ends = [0] if offsets is None else offsets.tolist()
    if offsets is not None and not include_last_offset:
        ends = [*ends, len(input)]
    scales = torch.ones(input.shape) if per_sample_weights is None else per_sample_weights
    bags = (
        list(zip(input, scales, strict=True))
        if offsets is None
        else [(input[a:b], scales[a:b]) for a, b in pairwise(ends)]
    )
    results = []
    for ids, shares in bags:
        keep = torch.ones_like(ids, dtype=torch.bool) if padding_idx is None else ids != padding_idx
        rows = weight[ids[keep]] * shares[keep].unsqueeze(1)
        empty = torch.zeros(weight.shape[1], dtype=weight.dtype)
        form = {"sum": lambda r: r.sum(0), "mean": lambda r: r.mean(0), "max": lambda r: r.max(0).values}
        results.append(form[mode](rows) if len(rows) else empty)
    return torch.stack(results)


@contextmanager
def textbook_operations() -> Iterator[None]:
    """Write out operations that torch differentiates only once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(F, "scaled_dot_product_attention", attention)
        patch.setattr(F, "hardsigmoid", hardsigmoid)
        patch.setattr(F, "embedding_bag", embedding_bag)
        yield


def logits_of(module: nn.Module, params: Params, inputs: Any) -> Tensor:
    arguments = inputs if isinstance(inputs, tuple) else () if isinstance(inputs, Mapping) else (inputs,)
    keywords = dict(inputs) if isinstance(inputs, Mapping) else {}
    result = functional_call(module, params, arguments, keywords)
    return result if isinstance(result, Tensor) else result["logits"]


def residuals_gram(module: nn.Module, params: Params, x: Any, y: Tensor, psi: Sequence[str]) -> Tensor:
    return dense_gram(lambda p: naive_residuals(logits_of(module, p, x), y), params, psi)


def outer_loss_and_gradient(
    module: nn.Module, task: Task, *, rate: float, steps: int, psi: Sequence[str] = (), gamma: float = 0.0
) -> tuple[Tensor, Params]:
    """Return query loss after ``steps`` steps plus γ times the mean log-variance of the Gram matrices."""
    start = {n: p.detach().clone().requires_grad_() for n, p in module.named_parameters() if p.requires_grad}
    theta, total = dict(start), torch.zeros((), dtype=torch.float64)
    for _ in range(steps):
        if gamma:
            gram = residuals_gram(module, theta, task.support_x, task.support_y, psi)
            total = total + gamma / steps * log_variance(gram)
        loss = F.cross_entropy(logits_of(module, theta, task.support_x), task.support_y)
        grads = torch.autograd.grad(loss, list(theta.values()), create_graph=True, materialize_grads=True)
        theta = {name: value - rate * grad for (name, value), grad in zip(theta.items(), grads, strict=True)}
    total = total + F.cross_entropy(logits_of(module, theta, task.query_x), task.query_y)
    grads = torch.autograd.grad(total, list(start.values()), materialize_grads=True)
    return total.detach(), dict(zip(start, grads, strict=True))
