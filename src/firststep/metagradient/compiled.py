"""Compiled steps: the step, its pull-back and the query gradient, each one graph whatever K is.

The step and its pull-back are recorded together and cut in two: the pull-back starts from what the step
computed. Where that was not kept, the step is run once more before it. The compiler keeps its results on
disk, so that a later process with the same shapes starts warm.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import TreeSpec, tree_unflatten

from firststep.metagradient.channels import channels_innermost
from firststep.metagradient.objective import Conditioning
from firststep.metagradient.recording import Function, compile_graph, flat, record, shapes
from firststep.metagradient.rewrite import use_fast_kernels
from firststep.metagradient.rows import Conditioned, conditioning_by_rows, reaches_deep
from firststep.metagradient.split import split
from firststep.metagradient.steps import EagerSteps, Pulled, Queried, Stepped
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule

Built = TypeVar("Built")


class _Pair(NamedTuple):
    """A compiled step and its pull-back."""

    step: Function
    pull_back: Function
    stepped: int
    """How many tensors the step's result has; what is kept comes after them."""
    structure: TreeSpec
    """Of (Stepped, Pulled)."""
    kept_bytes: int
    rows: Callable[[Params, Tensor, Tensor, Tensor], Conditioned] | None
    """Conditioning that is too deep to be a part of the pull-back."""


def _form(images: Tensor) -> tuple[Any, ...]:
    """What compiled code depends on; the order of the values in memory is arranged."""
    return images.shape, images.dtype, images.device


class _Kept(NamedTuple):
    pair: _Pair
    support: tuple[Params, Tensor, Tensor]
    inputs: list[Tensor]
    values: list[Tensor]


class CompiledSteps:
    """As :class:`EagerSteps`, compiled at the first call with a new shape.

    Not every network takes images with the channels innermost (``view`` does not): if compiling fails with
    them, it is tried with the usual order. If it fails again, one warning says why, and from then on
    everything runs as it is.
    """

    def __init__(self, model: FunctionalModule, rule: Rule, conditioning: Conditioning | None) -> None:
        self._eager = EagerSteps(model, rule, conditioning)
        self._by_rows = conditioning if conditioning and reaches_deep(model, conditioning.subset) else None
        self._recorded = EagerSteps(model, rule, None if self._by_rows else conditioning, True)
        self._pairs: dict[Any, _Pair] = {}
        self._queries: dict[Any, tuple[Function, TreeSpec]] = {}
        self._works = True
        self._innermost = True

    def forward(
        self, params: Params, own: Params, images: Tensor, labels: Tensor, keep: bool
    ) -> tuple[Stepped, Any]:
        pair = self._pair(params, own, images, labels)
        images = self._arranged(images)
        if pair is None:
            return self._eager.forward(params, own, images, labels, keep)
        inputs = flat((params, own, images, labels))
        with torch.no_grad():
            results = pair.step(*inputs)
        # The spec is of both halves; the pull-back's leaves are not there yet.
        blanks = [None] * (pair.structure.num_leaves - pair.stepped)
        stepped, _ = tree_unflatten([*results[: pair.stepped], *blanks], pair.structure)
        if not keep:
            return stepped, None
        return stepped, _Kept(pair, (params, images, labels), inputs, results[pair.stepped :])

    def pull_back(self, kept: Any, cotangents: Params, weight: Tensor) -> Pulled:
        if not isinstance(kept, _Kept):
            return self._eager.pull_back(kept, cotangents, weight)
        with torch.no_grad():
            # In the order that was compiled for; the query's gradients come with channels innermost.
            against = {name: value.contiguous() for name, value in cotangents.items()}
            results = kept.pair.pull_back(*kept.inputs, *flat((against, weight)), *kept.values)
        blanks = [None] * kept.pair.stepped
        pulled: Pulled = tree_unflatten([*blanks, *results], kept.pair.structure)[1]
        if kept.pair.rows is None:
            return pulled
        added = kept.pair.rows(*kept.support, weight)
        both = {name: value + added.params[name] for name, value in pulled.params.items()}
        return pulled._replace(params=both, stage_loss=added.stage_loss, gram=added.gram)

    def query(self, params: Params, images: Tensor, labels: Tensor) -> Queried:
        def build() -> tuple[Function, TreeSpec]:
            arguments = (params, self._arranged(images), labels)
            graph, structure = record(self._eager.query, arguments)
            use_fast_kernels(graph)
            return compile_graph(graph, flat(arguments)), structure

        known = self._built(self._queries, shapes((params, labels, *_form(images))), build)
        images = self._arranged(images)
        if known is None:
            return self._eager.query(params, images, labels)
        compiled, structure = known
        with torch.no_grad():
            queried: Queried = tree_unflatten(compiled(*flat((params, images, labels))), structure)
        return queried

    def kept_bytes(self, params: Params, own: Params, images: Tensor, labels: Tensor) -> int:
        pair = self._pair(params, own, images, labels)
        if pair is None:
            return self._eager.kept_bytes(params, own, images, labels)
        return pair.kept_bytes

    def _arranged(self, images: Tensor) -> Tensor:
        return channels_innermost(images) if self._innermost else images.contiguous()

    def _pair(self, params: Params, own: Params, images: Tensor, labels: Tensor) -> _Pair | None:
        def build() -> _Pair:
            return self._compile_pair(params, own, self._arranged(images), labels)

        return self._built(self._pairs, shapes((params, own, labels, *_form(images))), build)

    def _built(self, known: dict[Any, Built], key: Any, build: Callable[[], Built]) -> Built | None:
        """What was built for inputs of these shapes, or is built now; None if that is not possible."""
        while self._works and key not in known:
            try:
                known[key] = build()
            except Exception as error:
                if not self._innermost:
                    self._give_up(error)
                self._innermost = False
        return known.get(key)

    def _compile_pair(self, params: Params, own: Params, images: Tensor, labels: Tensor) -> _Pair:
        def both(
            params: Params, own: Params, images: Tensor, labels: Tensor, cotangents: Params, weight: Tensor
        ) -> tuple[Stepped, Pulled]:
            stepped, kept = self._recorded.forward(params, own, images, labels, keep=True)
            assert kept is not None
            return stepped, self._recorded.pull_back(kept, cotangents, weight)

        weight = torch.zeros((), dtype=torch.float64, device=images.device)
        # Tensors of their own: the recorder tells inputs apart by identity.
        cotangents = {
            name: torch.zeros_like(value, memory_format=torch.contiguous_format)
            for name, value in params.items()
        }
        arguments = (params, own, images, labels, cotangents, weight)
        graph, structure = record(both, arguments)
        use_fast_kernels(graph)
        leaves = flat(arguments)
        stepped = structure.children()[0].num_leaves
        inputs = len(flat((params, own, images, labels)))
        halves = split(graph, inputs, stepped)
        step = compile_graph(halves.first, leaves[:inputs])
        with torch.no_grad():
            kept = step(*leaves[:inputs])[stepped:]
        pull_back = compile_graph(halves.second, [*leaves, *kept])
        return _Pair(
            step=step,
            pull_back=pull_back,
            stepped=stepped,
            structure=structure,
            kept_bytes=sum({value.data_ptr(): value.untyped_storage().nbytes() for value in kept}.values()),
            rows=conditioning_by_rows(self._eager.model, self._by_rows, params, images, labels)
            if self._by_rows
            else None,
        )

    def _give_up(self, error: Exception) -> None:
        self._works = False
        self._pairs.clear()
        self._queries.clear()
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        warnings.warn(f"compiling failed, going on without ({reason})", RuntimeWarning, stacklevel=6)
