"""Compiled steps: the step, its pull-back and the query gradient, each one graph whatever K is.

The step and its pull-back are traced together and cut in two: the pull-back starts from what the step
computed. Where that was not saved, the step is run once more before it. The compiler stores its results on
disk, so that a later process with the same shapes starts warm.
"""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from firststep.allocator import give_back_freed_memory
from firststep.metagradient.compiler.direct_gradient import load_direct_gradient
from firststep.metagradient.compiler.few_channels import load_few_channels
from firststep.metagradient.compiler.partition import partition
from firststep.metagradient.compiler.rewrite import use_fast_kernels
from firststep.metagradient.compiler.rows import Conditioned, conditioning_by_rows, reaches_deep
from firststep.metagradient.compiler.torch_internals import (
    TreeSpec,
    kernels_beside,
    start_cpp_compiler,
    tree_unflatten,
)
from firststep.metagradient.compiler.trace import (
    Function,
    compile_graph,
    flatten,
    forms,
    results_like,
    shape_key,
    storage_bytes,
    trace_graph,
)
from firststep.metagradient.compiler.winograd import load_convolution, load_gradient
from firststep.metagradient.eager import EagerSteps, QueryGradient, StepGradients, StepOutput, input_form
from firststep.metagradient.objective import Conditioning
from firststep.network import FunctionalModule, Params, missing_derivative
from firststep.rules import Rule
from firststep.task import Inputs, map_inputs, to_channels_last

Built = TypeVar("Built")
_Query = tuple[Inputs, Tensor]
# Tracing and compiling change settings of the whole process: one thread at a time.
_BUILDING = threading.RLock()


class _Pair(NamedTuple):
    """A compiled step and its pull-back."""

    step: Function
    pull_back: Function
    outputs: int
    """How many tensors the step's result has; what is saved comes after them."""
    structure: TreeSpec
    """Of (StepOutput, StepGradients)."""
    saved_bytes: int
    rows: Callable[[Params, Inputs, Tensor, Tensor], Conditioned] | None
    """Conditioning that is too deep to be a part of the pull-back."""


class _Saved(NamedTuple):
    pair: _Pair
    support: tuple[Params, Inputs, Tensor]
    inputs: list[Tensor]
    values: list[Tensor]


@dataclass
class _Shared:
    """What a compiler has made, and how."""

    pairs: dict[Any, _Pair] = field(default_factory=dict)
    queries: dict[Any, tuple[Function, TreeSpec]] = field(default_factory=dict)
    works: bool = True
    channels_last: bool = True

    def clear(self) -> None:
        self.pairs.clear()
        self.queries.clear()


class CompiledSteps:
    """As :class:`EagerSteps`, compiled at the first call with a new shape.

    Not every network takes images with the channels last in memory (``view`` does not): if compiling fails
    with them, it is tried with the usual order. If it fails again, one warning says why, and from then on
    everything runs without the compiler.
    """

    def __init__(
        self,
        model: FunctionalModule,
        rule: Rule,
        conditioning: Conditioning | None,
        saved_dtype: torch.dtype | None = None,
    ) -> None:
        self._eager = EagerSteps(model, rule, conditioning)
        self._by_rows = conditioning if conditioning and reaches_deep(model, conditioning.subset) else None
        self._traced = EagerSteps(model, rule, None if self._by_rows else conditioning, True)
        self._shared = _Shared()
        self._saved_dtype = saved_dtype

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledSteps:
        """With a network of its own. What is compiled does not call the network, and is shared."""
        twin = copy.copy(self)
        twin._eager, twin._traced = copy.deepcopy((self._eager, self._traced), memo)
        return twin

    def forward(
        self, params: Params, rule_params: Params, x: Inputs, y: Tensor, save: bool
    ) -> tuple[StepOutput, Any]:
        pair = self._pair(params, rule_params, x, y)
        x = self._arranged(x)
        if pair is None:
            return self._eager.forward(params, rule_params, x, y, save)
        inputs = flatten((params, rule_params, x, y))
        with torch.no_grad():
            results = pair.step(*inputs)
        # The structure is that of both parts; the pull-back's leaves are not there yet.
        blanks = [None] * (pair.structure.num_leaves - pair.outputs)
        output, _ = tree_unflatten([*results[: pair.outputs], *blanks], pair.structure)
        if not save:
            return output, None
        return output, _Saved(pair, (params, x, y), inputs, results[pair.outputs :])

    def pull_back(self, saved: Any, cotangents: Params, weight: Tensor) -> StepGradients:
        if not isinstance(saved, _Saved):
            return self._eager.pull_back(saved, cotangents, weight)
        with torch.no_grad():
            # In the order that was compiled for; the query's gradients come channels last.
            against = {name: value.contiguous() for name, value in cotangents.items()}
            results = saved.pair.pull_back(*saved.inputs, *flatten((against, weight)), *saved.values)
        blanks = [None] * saved.pair.outputs
        gradients: StepGradients = tree_unflatten([*blanks, *results], saved.pair.structure)[1]
        if saved.pair.rows is None:
            return gradients
        added = saved.pair.rows(*saved.support, weight)
        both = {name: value + added.params[name] for name, value in gradients.params.items()}
        return gradients._replace(params=both, stage_loss=added.stage_loss, gram=added.gram)

    def prepare(
        self, params: Params, rule_params: Params, x: Inputs, y: Tensor, query_x: Inputs, query_y: Tensor
    ) -> None:
        pair = self._pair(params, rule_params, x, y, (query_x, query_y))
        if pair is None or self._query(params, query_x, query_y) is None:
            self._eager.prepare(params, rule_params, x, y, query_x, query_y)

    def query(self, params: Params, x: Inputs, y: Tensor) -> QueryGradient:
        known = self._query(params, x, y)
        x = self._arranged(x)
        if known is None:
            return self._eager.query(params, x, y)
        compiled, structure = known
        with torch.no_grad():
            result: QueryGradient = tree_unflatten(compiled(*flatten((params, x, y))), structure)
        return result

    def _query(self, params: Params, x: Inputs, y: Tensor) -> tuple[Function, TreeSpec] | None:
        def build() -> tuple[Function, TreeSpec]:
            return self._compile_query(params, x, y)

        return self._built(self._shared.queries, _query_key(params, x, y), build)

    def _compile_query(self, params: Params, x: Inputs, y: Tensor) -> tuple[Function, TreeSpec]:
        arguments = (params, self._arranged(x), y)
        graph, structure = trace_graph(self._eager.query, arguments)
        use_fast_kernels(graph)
        return compile_graph(graph, flatten(arguments)), structure

    def saved_bytes(self, params: Params, rule_params: Params, x: Inputs, y: Tensor) -> int:
        pair = self._pair(params, rule_params, x, y)
        if pair is None:
            return self._eager.saved_bytes(params, rule_params, x, y)
        return pair.saved_bytes

    def _arranged(self, x: Inputs) -> Inputs:
        return map_inputs(to_channels_last if self._shared.channels_last else torch.Tensor.contiguous, x)

    def _pair(
        self, params: Params, rule_params: Params, x: Inputs, y: Tensor, query: _Query | None = None
    ) -> _Pair | None:
        """Where it has to be compiled, the gradient of a query set that is known already is with it."""

        def build() -> _Pair:
            return self._compile_pair(params, rule_params, self._arranged(x), y, query)

        return self._built(self._shared.pairs, shape_key((params, rule_params, y, *input_form(x))), build)

    def _built(self, known: dict[Any, Built], key: Any, build: Callable[[], Built]) -> Built | None:
        """What was built for inputs of these shapes, or is built now; None if that is not possible."""
        if key in known:
            return known[key]
        with _BUILDING:
            while self._shared.works and key not in known:
                try:
                    known[key] = build()
                    give_back_freed_memory()  # what compiling took, before a task needs its own
                except Exception as error:
                    if missing_derivative(error) is not None:  # it fails without a compiler too
                        raise
                    if not self._shared.channels_last:
                        self._give_up(error)
                    self._shared.channels_last = False
                    self._shared.clear()  # made for images that will not come any more
        return known.get(key)

    def _compile_pair(
        self, params: Params, rule_params: Params, x: Inputs, y: Tensor, query: _Query | None
    ) -> _Pair:
        def both(
            params: Params, rule_params: Params, x: Inputs, y: Tensor, cotangents: Params, weight: Tensor
        ) -> tuple[StepOutput, StepGradients]:
            output, saved = self._traced.forward(params, rule_params, x, y, save=True)
            assert saved is not None
            return output, self._traced.pull_back(saved, cotangents, weight)

        if y.device.type == "cpu":
            start_cpp_compiler(_load_own_routines)
        weight = torch.zeros((), dtype=torch.float64, device=y.device)
        # Tensors of their own: tracing tells inputs apart by identity.
        cotangents = {
            name: torch.zeros_like(value, memory_format=torch.contiguous_format)
            for name, value in params.items()
        }
        arguments = (params, rule_params, x, y, cotangents, weight)
        graph, structure = trace_graph(both, arguments)
        use_fast_kernels(graph)
        leaves = flatten(arguments)
        outputs = len(flatten(tree_unflatten(list(range(structure.num_leaves)), structure)[0]))
        inputs = len(flatten((params, rule_params, x, y)))
        parts = partition(graph, inputs, outputs, self._saved_dtype)
        queries = self._shared.queries
        compiled: tuple[Function, TreeSpec] | None = None
        key = None if query is None else _query_key(params, *query)
        # The largest graph first: its C++ is compiled while Python lowers the others.
        expected = results_like(parts.forward, leaves[:inputs])[outputs:]
        with kernels_beside(y.device):
            pull_back = compile_graph(parts.backward, [*leaves, *expected])
            step = compile_graph(parts.forward, leaves[:inputs])
            if query is not None and key not in queries:
                compiled = self._compile_query(params, *query)
        with torch.no_grad():
            saved = step(*leaves[:inputs])[outputs:]
        if forms(saved) != forms(expected):
            pull_back = compile_graph(parts.backward, [*leaves, *saved])
        rows = conditioning_by_rows(self._eager.model, self._by_rows, params, x, y) if self._by_rows else None
        if compiled is not None:  # now, when nothing can fail any more
            queries[key] = compiled
        return _Pair(step, pull_back, outputs, structure, storage_bytes(saved), rows)

    def _give_up(self, error: Exception) -> None:
        self._shared.works = False
        self._shared.clear()
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        warnings.warn(f"compiling failed, going on without ({reason})", RuntimeWarning, stacklevel=6)


def _load_own_routines() -> None:
    """Nearly all networks need them, and they take two seconds each to compile."""
    for load in (load_convolution, load_gradient, load_direct_gradient, load_few_channels):
        load(torch.float32)


def _query_key(params: Params, x: Inputs, y: Tensor) -> Any:
    return shape_key((params, y, *input_form(x)))
