"""The meta-gradient of Conv4 in JAX, compiled by XLA: a peer for benchmarks/contenders.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import lax
from torch import Tensor

from firststep import Task
from firststep.functional import FunctionalModule

jax.config.update("jax_enable_x64", True)  # for float64 networks; float32 ones stay float32


def jax_gradient(
    model: FunctionalModule, task: Task, steps: int, rate: float, remat: bool
) -> Callable[[], dict[str, Tensor]]:
    """Return a function that computes the gradient through all inner steps.

    Args:
        model: a Conv4 network.
        task: images and labels.
        steps: number of inner steps.
        rate: of the inner steps.
        remat: scan over the steps and compute each again in the backward pass, for less memory; otherwise
            the steps are unrolled.
    """
    start = {name: jnp.asarray(value.detach().numpy()) for name, value in model.params().items()}
    support, query = (
        (jnp.asarray(x.permute(0, 2, 3, 1).numpy()), jnp.asarray(y.numpy()))
        for x, y in ((task.support_x, task.support_y), (task.query_x, task.query_y))
    )

    def descend(theta: Mapping[str, Any], _: None) -> tuple[dict[str, Any], None]:
        grads = jax.grad(_loss)(theta, *support)
        return {name: value - rate * grads[name] for name, value in theta.items()}, None

    def outer(theta: dict[str, Any]) -> Any:
        if remat:
            theta, _ = lax.scan(jax.checkpoint(descend), theta, None, length=steps)
        else:
            for _ in range(steps):
                theta, _ = descend(theta, None)
        return _loss(theta, *query)

    gradient = jax.jit(jax.grad(outer))
    return lambda: {name: torch.from_numpy(np.array(value)) for name, value in gradient(start).items()}


def _loss(theta: Mapping[str, Any], x: Any, y: Any) -> Any:
    for block in range(4):
        x = _block(theta, f"blocks.{block}", x)
    features = x.transpose(0, 3, 1, 2).reshape(len(x), -1)
    logits = features @ theta["classifier.weight"].T + theta["classifier.bias"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()


def _block(theta: Mapping[str, Any], block: str, x: Any) -> Any:
    """Return a block's images, the channels innermost: XLA's fastest order on CPUs."""
    kernel = theta[f"{block}.conv.weight"].transpose(2, 3, 1, 0)
    x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = x + theta[f"{block}.conv.bias"]
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    x = (x - mean) * lax.rsqrt(variance + 1e-5) * theta[f"{block}.norm.weight"] + theta[f"{block}.norm.bias"]
    n, h, w, c = x.shape
    tiles = jax.nn.relu(x)[:, : h // 2 * 2, : w // 2 * 2].reshape(n, h // 2, 2, w // 2, 2, c)
    return tiles.max((2, 4))
