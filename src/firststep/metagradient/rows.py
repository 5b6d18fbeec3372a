"""The conditioning loss of many parameters and its gradient, compiled a few rows of the Jacobian at a time.

As :mod:`firststep.conditioning.jacobian`: rows J_i first, G = J Jᵀ, the loss and its cotangent S of G; then
each row is differentiated once, against the fixed vector Jᵀ S_i. All chunks of rows have the same shape, so
one compiled pair serves them: rows, and what they pull back. The pull-back starts from what the rows computed
where that may be kept, else the rows are computed once more: memory is bounded, whatever their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from firststep.adaptation import support_gram
from firststep.conditioning import cross_entropy_residuals
from firststep.conditioning.jacobian import DEFAULT_MEMORY
from firststep.conditioning.jacobian_rows import pull_rows
from firststep.metagradient.objective import Conditioning
from firststep.metagradient.recording import Function, compile_graph, flat, record
from firststep.metagradient.rewrite import use_fast_kernels
from firststep.metagradient.split import split
from firststep.network import FunctionalModule, Params

# The rows of a chunk share the network's own pass, but the graph to compile grows with them.
ROWS_AT_ONCE = 5
MOST_OF_J = DEFAULT_MEMORY // 2  # bytes: there are several forms of it at a time


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
    """What conditioning adds to one step's pull-back."""

    params: Params
    stage_loss: Tensor
    gram: Tensor


class EagerRows:
    """Not compiled, for a Jacobian that is too large to be held: layer by layer, see ``jacobian_gram``."""

    def __init__(self, model: FunctionalModule, conditioning: Conditioning) -> None:
        self._learner = model
        self._conditioning = conditioning

    def __call__(self, params: Params, images: Tensor, labels: Tensor, weight: Tensor) -> Conditioned:
        theta = {name: value.detach().requires_grad_() for name, value in params.items()}
        subset = self._conditioning.subset
        with torch.enable_grad():
            gram = support_gram(
                self._learner, images, labels, params=theta, subset=subset, check_finite=False
            )
            stage_loss = self._conditioning.stage_loss(gram)
        grads = torch.autograd.grad(stage_loss, list(theta.values()), weight, materialize_grads=True)
        return Conditioned(dict(zip(params, grads, strict=True)), stage_loss.detach(), gram.detach())


def conditioning_by_rows(
    model: FunctionalModule, conditioning: Conditioning, params: Params, images: Tensor, labels: Tensor
) -> Callable[[Params, Tensor, Tensor, Tensor], Conditioned]:
    """(parameters, images, labels, weight) ↦ the loss and ``weight`` times its gradient in all parameters."""
    psi = [params[name] for name in model.subset(conditioning.subset)]
    jacobian_bytes = len(labels) * sum(value.numel() * value.element_size() for value in psi)
    if jacobian_bytes > MOST_OF_J:
        return EagerRows(model, conditioning)
    return CompiledRows(model, conditioning, params, images, labels)


class CompiledRows:
    """Compiled at once for parameters and a support set of these shapes."""

    def __init__(
        self,
        model: FunctionalModule,
        conditioning: Conditioning,
        params: Params,
        images: Tensor,
        labels: Tensor,
    ) -> None:
        self._conditioning = conditioning
        self._psi = model.subset(conditioning.subset)

        def rows_and_pull_back(
            params: Params, images: Tensor, labels: Tensor, units: Tensor, fixed: tuple[Tensor, ...]
        ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
            theta = {name: value.detach().requires_grad_() for name, value in params.items()}
            with torch.enable_grad():
                logits = model(theta, images).logits
                vector = cross_entropy_residuals(logits, labels, check_finite=False)
                rows = pull_rows(vector, [theta[name] for name in self._psi], units, create_graph=True)
                product = torch.stack([(f * j).sum() for f, j in zip(fixed, rows, strict=True)]).sum()
                grads = torch.autograd.grad(product, list(theta.values()), materialize_grads=True)
            return tuple(row.detach() for row in rows), grads

        count = len(labels)
        self._units = _padded(torch.eye(count, dtype=torch.float64, device=images.device))
        fixed = tuple(torch.zeros(ROWS_AT_ONCE, *params[name].shape).to(params[name]) for name in self._psi)
        arguments = (params, images, labels, self._units[:ROWS_AT_ONCE], fixed)
        graph, _ = record(rows_and_pull_back, arguments)
        use_fast_kernels(graph, deep_rows=True)
        leaves = flat(arguments)
        inputs = len(leaves) - len(fixed)
        halves = split(graph, inputs, len(self._psi))
        self._rows: Function = compile_graph(halves.first, leaves[:inputs])
        with torch.no_grad():
            kept = self._rows(*leaves[:inputs])[len(self._psi) :]
        self._pull_back: Function = compile_graph(halves.second, [*leaves, *kept])
        chunk_bytes = sum({value.data_ptr(): value.untyped_storage().nbytes() for value in kept}.values())
        self._keep = chunk_bytes * (len(self._units) // ROWS_AT_ONCE) <= DEFAULT_MEMORY

    @torch.no_grad()
    def __call__(self, params: Params, images: Tensor, labels: Tensor, weight: Tensor) -> Conditioned:
        support = flat((params, images, labels))
        chunks = self._units.split(ROWS_AT_ONCE)
        parts, kept = [], []
        for units in chunks:
            results = self._rows(*support, units)
            parts.append(results[: len(self._psi)])
            kept.append(results[len(self._psi) :] if self._keep else None)
        jacobian = [
            torch.cat(rows)[: len(labels)].reshape(len(labels), -1).double()
            for rows in zip(*parts, strict=True)
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
        del parts, jacobian, results  # forms of J that have served
        total = [torch.zeros_like(value) for value in params.values()]
        for number, units in enumerate(chunks):
            values = kept[number]
            if values is None:
                values = self._rows(*support, units)[len(self._psi) :]
            against = [of_parameter[number] for of_parameter in fixed]
            grads = self._pull_back(*support, units, *against, *values)
            kept[number] = values = None  # it has served
            total = [t + g for t, g in zip(total, grads, strict=True)]
        return Conditioned(dict(zip(params, total, strict=True)), stage_loss.detach(), gram.detach())


def _padded(rows: Tensor) -> Tensor:
    """With rows of zeros, which add nothing, up to a whole number of chunks."""
    missing = math.ceil(len(rows) / ROWS_AT_ONCE) * ROWS_AT_ONCE - len(rows)
    return torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])]) if missing else rows
