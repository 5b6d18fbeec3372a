"""The conditioning loss of many parameters and its gradient, compiled a few rows of the Jacobian at a time.

As :mod:`firststep.conditioning.jacobian`: rows J_i first, G = J Jᵀ, the loss and its cotangent S of G; then
each row is differentiated once, against the fixed vector Jᵀ S_i. All chunks of rows have the same shape, so
one compiled pair serves them: rows, and their pull-back. The pull-back starts from what the rows computed
where that may be saved, else the rows are computed once more: memory is bounded, whatever their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from firststep.adaptation import gram_of
from firststep.conditioning import JACOBIAN_MEMORY, cross_entropy_residuals, pull_rows
from firststep.metagradient.compiler.partition import partition
from firststep.metagradient.compiler.rewrite import use_fast_kernels
from firststep.metagradient.compiler.trace import (
    Function,
    compile_graph,
    flatten,
    storage_bytes,
    trace_graph,
)
from firststep.metagradient.objective import Conditioning
from firststep.network import FunctionalModule, Params
from firststep.task import Inputs

# The rows of a chunk share the network's own pass, but the graph to compile grows with them.
ROWS_AT_ONCE = 5
LARGEST_JACOBIAN = JACOBIAN_MEMORY // 2  # bytes: there are several copies of it at a time


def reaches_deep(model: FunctionalModule, subset: str | tuple[str, ...]) -> bool:
    """Whether the rows of a subset's Jacobian reach below the last layers: then their graph is large."""
    shallow = {name for part in ("cls", "emb", "ebn") for name in _subset_if_any(model, part)}
    return not shallow.issuperset(model.subset(subset))


def _subset_if_any(model: FunctionalModule, part: str) -> tuple[str, ...]:
    try:
        return model.subset(part)
    except ValueError:  # this network has none
        return ()


class Conditioned(NamedTuple):
    """The conditioning loss of a stage and its gradient, which is added to the step's pull-back."""

    params: Params
    stage_loss: Tensor
    gram: Tensor


class EagerRows:
    """Not compiled, for a Jacobian that is too large to be held: layer by layer, see ``jacobian_gram``."""

    def __init__(self, model: FunctionalModule, conditioning: Conditioning) -> None:
        self._model = model
        self._conditioning = conditioning

    def __call__(self, params: Params, x: Inputs, y: Tensor, weight: Tensor) -> Conditioned:
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        subset = self._conditioning.subset
        with torch.enable_grad():
            gram = gram_of(self._model, x, y, theta, subset)
            stage_loss = self._conditioning.stage_loss(gram)
        grads = torch.autograd.grad(stage_loss, list(theta.values()), weight, materialize_grads=True)
        return Conditioned(dict(zip(params, grads, strict=True)), stage_loss.detach(), gram.detach())


def conditioning_by_rows(
    model: FunctionalModule, conditioning: Conditioning, params: Params, x: Inputs, y: Tensor
) -> Callable[[Params, Inputs, Tensor, Tensor], Conditioned]:
    """(parameters, inputs, labels, weight) ↦ the loss and ``weight`` times its gradient in all parameters."""
    psi = [params[name] for name in model.subset(conditioning.subset)]
    jacobian_bytes = len(y) * sum(value.numel() * value.element_size() for value in psi)
    if jacobian_bytes > LARGEST_JACOBIAN:
        return EagerRows(model, conditioning)
    return CompiledRows(model, conditioning, params, x, y)


class CompiledRows:
    """Compiled at once for parameters and a support set of these shapes."""

    def __init__(
        self,
        model: FunctionalModule,
        conditioning: Conditioning,
        params: Params,
        x: Inputs,
        y: Tensor,
    ) -> None:
        self._conditioning = conditioning
        self._psi = model.subset(conditioning.subset)

        def rows_and_pull_back(
            params: Params, x: Inputs, y: Tensor, units: Tensor, fixed: tuple[Tensor, ...]
        ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
            theta = {name: value.detach().requires_grad_() for name, value in params.items()}
            with torch.enable_grad():
                logits = model(theta, x).logits
                vector = cross_entropy_residuals(logits, y, check_finite=False)
                rows = pull_rows(vector, [theta[name] for name in self._psi], units, create_graph=True)
                product = torch.stack([(f * j).sum() for f, j in zip(fixed, rows, strict=True)]).sum()
                grads = torch.autograd.grad(product, list(theta.values()), materialize_grads=True)
            return tuple(row.detach() for row in rows), grads

        self._units = _padded(torch.eye(len(y), dtype=torch.float64, device=y.device))
        fixed = tuple(torch.zeros(ROWS_AT_ONCE, *params[name].shape).to(params[name]) for name in self._psi)
        arguments = (params, x, y, self._units[:ROWS_AT_ONCE], fixed)
        graph, _ = trace_graph(rows_and_pull_back, arguments)
        use_fast_kernels(graph, deep_rows=True)
        leaves = flatten(arguments)
        inputs = len(leaves) - len(fixed)
        parts = partition(graph, inputs, len(self._psi))
        self._rows: Function = compile_graph(parts.forward, leaves[:inputs])
        with torch.no_grad():
            saved = self._rows(*leaves[:inputs])[len(self._psi) :]
        self._pull_back: Function = compile_graph(parts.backward, [*leaves, *saved])
        self._save = storage_bytes(saved) * (len(self._units) // ROWS_AT_ONCE) <= JACOBIAN_MEMORY

    @torch.no_grad()
    def __call__(self, params: Params, x: Inputs, y: Tensor, weight: Tensor) -> Conditioned:
        support = flatten((params, x, y))
        chunks = self._units.split(ROWS_AT_ONCE)
        parts, saved = [], []
        for units in chunks:
            results = self._rows(*support, units)
            parts.append(results[: len(self._psi)])
            saved.append(results[len(self._psi) :] if self._save else None)
        jacobian = [
            torch.cat(rows)[: len(y)].reshape(len(y), -1).double() for rows in zip(*parts, strict=True)
        ]
        gram = torch.stack([j @ j.mT for j in jacobian]).sum(0)
        with torch.enable_grad():
            stage_loss = self._conditioning.stage_loss(gram.requires_grad_())
        (cotangent,) = torch.autograd.grad(stage_loss, gram, weight)
        symmetric = cotangent + cotangent.mT
        fixed = [
            _padded((symmetric @ j).to(params[name].dtype))
            .reshape(-1, *params[name].shape)
            .split(ROWS_AT_ONCE)
            for name, j in zip(self._psi, jacobian, strict=True)
        ]
        del parts, jacobian, results  # copies of J that are not needed any more
        total = [torch.zeros_like(value) for value in params.values()]
        for number, units in enumerate(chunks):
            values = saved[number]
            if values is None:
                values = self._rows(*support, units)[len(self._psi) :]
            against = [of_parameter[number] for of_parameter in fixed]
            grads = self._pull_back(*support, units, *against, *values)
            saved[number] = values = None  # frees its memory
            total = [t + g for t, g in zip(total, grads, strict=True)]
        return Conditioned(dict(zip(params, total, strict=True)), stage_loss.detach(), gram.detach())


def _padded(rows: Tensor) -> Tensor:
    """With rows of zeros, which add nothing, up to a whole number of chunks."""
    missing = math.ceil(len(rows) / ROWS_AT_ONCE) * ROWS_AT_ONCE - len(rows)
    return torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])]) if missing else rows
