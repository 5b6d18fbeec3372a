"""Compiled steps: one graph each for the step, its pull-back and the query gradient, for any K.

The step and its pull-back are traced together and then split: the pull-back starts from tensors that the step
saved. If they were not kept, the step runs again. The compiler caches its results on disk, so that a later
process with the same shapes starts warm.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from firststep.conditioning import has_float64
from firststep.losses import first_tensor
from firststep.metagradient.compiler.built_functions import BuiltFunctions
from firststep.metagradient.compiler.direct_gradient import load_direct_gradient
from firststep.metagradient.compiler.few_channels import load_few_channels
from firststep.metagradient.compiler.inductor_patches import overlap_cpp_compilation
from firststep.metagradient.compiler.kept_code import Kept, find
from firststep.metagradient.compiler.partition import partition
from firststep.metagradient.compiler.passes import REWRITE, apply
from firststep.metagradient.compiler.rows import Conditioned, conditioning_by_rows, reaches_deep
from firststep.metagradient.compiler.torch_internals import TreeSpec, start_cpp_compiler, tree_unflatten
from firststep.metagradient.compiler.trace import (
    Function,
    compile_graph,
    expected_results,
    flatten,
    shape_key,
    storage_bytes,
    tensor_forms,
    trace_graph,
)
from firststep.metagradient.compiler.winograd import load_convolution, load_gradient
from firststep.metagradient.eager import (
    Cotangents,
    EagerSteps,
    QueryGradient,
    StepGradients,
    StepInput,
    StepOutput,
    input_form,
)
from firststep.metagradient.objective import Objective
from firststep.network import Params
from firststep.task import Inputs, Targets, map_inputs, to_channels_last

_Query = tuple[Inputs, Targets]


class _Pair(NamedTuple):
    """A compiled step and its pull-back."""

    step: Function
    pull_back: Function
    outputs: int
    """Number of tensors in the step's result. The saved tensors follow them."""
    structure: TreeSpec
    """Structure of (StepOutput, StepGradients)."""
    saved_bytes: int
    rows: Callable[[Params, Inputs, Targets, Tensor], Conditioned] | None
    """Conditioning that is too deep to be part of the pull-back."""


class _Saved(NamedTuple):
    pair: _Pair
    support: tuple[Params, Inputs, Targets]
    inputs: list[Tensor]
    values: list[Tensor]


class _QueryCode(NamedTuple):
    function: Function
    kept: Kept
    inputs: list[Any]

    def keep(self) -> tuple[Function, TreeSpec]:
        """Write the code to the cache, once its C++ is compiled."""
        self.kept.keep([self.function], [self.inputs])
        return self.function, self.kept.structure


class CompiledSteps:
    """The interface of :class:`EagerSteps`, compiled at the first call with a new shape.

    Some networks refuse channels-last images (``view`` does). If compiling fails with them, it is tried with
    contiguous images. If that fails too, one warning gives the reason and everything runs uncompiled.
    """

    def __init__(self, objective: Objective, saved_dtype: torch.dtype | None = None) -> None:
        self._eager = EagerSteps(objective)
        conditioning = objective.conditioning
        deep = conditioning is not None and reaches_deep(objective.model, conditioning.subset)
        self._by_rows = conditioning if deep else None
        self._traced = EagerSteps(replace(objective, conditioning=None) if deep else objective, True)
        self._shared = BuiltFunctions()
        self._saved_dtype = saved_dtype

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledSteps:
        """Copy the network but share the compiled functions, which do not call it."""
        clone = copy.copy(self)
        clone._eager, clone._traced = copy.deepcopy((self._eager, self._traced), memo)
        return clone

    def forward(self, start: StepInput, x: Inputs, y: Targets, save: bool) -> tuple[StepOutput, Any]:
        pair = self._pair(start, x, y)
        x = self._with_layout(x)
        if pair is None:
            return self._eager.forward(start, x, y, save)
        inputs = flatten((start, x, y))
        with torch.no_grad():
            results = pair.step(*inputs)
        # The structure covers both parts. The leaves of the pull-back do not exist yet.
        blanks = [None] * (pair.structure.num_leaves - pair.outputs)
        output, _ = tree_unflatten([*results[: pair.outputs], *blanks], pair.structure)
        if not save:
            return output, None
        return output, _Saved(pair, (start.params, x, y), inputs, results[pair.outputs :])

    def pull_back(self, saved: Any, cotangents: Cotangents, weight: Tensor) -> StepGradients:
        if not isinstance(saved, _Saved):
            return self._eager.pull_back(saved, cotangents, weight)
        with torch.no_grad():
            # Compiled for contiguous cotangents; those of the query are channels last.
            contiguous = Cotangents(
                *({name: value.contiguous() for name, value in part.items()} for part in cotangents)
            )
            results = saved.pair.pull_back(*saved.inputs, *flatten((contiguous, weight)), *saved.values)
        blanks = [None] * saved.pair.outputs
        gradients: StepGradients = tree_unflatten([*blanks, *results], saved.pair.structure)[1]
        if saved.pair.rows is None:
            return gradients
        added = saved.pair.rows(*saved.support, weight)
        both = {name: value + added.params[name] for name, value in gradients.params.items()}
        return gradients._replace(params=both, conditioning_loss=added.conditioning_loss, gram=added.gram)

    def prepare(self, start: StepInput, x: Inputs, y: Targets, query_x: Inputs, query_y: Targets) -> None:
        pair = self._pair(start, x, y, (query_x, query_y))
        if pair is None or self._query(start.params, query_x, query_y) is None:
            self._eager.prepare(start, x, y, query_x, query_y)

    def query(self, params: Params, x: Inputs, y: Targets) -> QueryGradient:
        known = self._query(params, x, y)
        x = self._with_layout(x)
        if known is None:
            return self._eager.query(params, x, y)
        compiled, structure = known
        with torch.no_grad():
            result: QueryGradient = tree_unflatten(compiled(*flatten((params, x, y))), structure)
        return result

    def _query(self, params: Params, x: Inputs, y: Targets) -> tuple[Function, TreeSpec] | None:
        def build() -> tuple[Function, TreeSpec]:
            return self._query_code(params, x, y).keep()

        return self._shared.get(self._shared.queries, _query_key(params, x, y), build)

    def _query_code(self, params: Params, x: Inputs, y: Targets) -> _QueryCode:
        arguments = (params, self._with_layout(x), y)
        kept = find(self._eager.query, arguments, "query")
        if kept.functions:
            return _QueryCode(kept.functions[0], kept, flatten(arguments))
        _start_cpp_compiler(y)
        graph, _ = trace_graph(self._eager.query, arguments)
        apply(REWRITE, graph)
        return _QueryCode(compile_graph(graph, flatten(arguments)), kept, flatten(arguments))

    def saved_bytes(self, start: StepInput, x: Inputs, y: Targets) -> int:
        pair = self._pair(start, x, y)
        if pair is None:
            return self._eager.saved_bytes(start, x, y)
        return pair.saved_bytes

    def _with_layout(self, x: Inputs) -> Inputs:
        return map_inputs(to_channels_last if self._shared.channels_last else torch.Tensor.contiguous, x)

    def _pair(self, start: StepInput, x: Inputs, y: Targets, query: _Query | None = None) -> _Pair | None:
        """Return the pair for these shapes. Compile it if needed, then also the gradient of ``query``."""

        def build() -> _Pair:
            return self._compile_pair(start, self._with_layout(x), y, query)

        return self._shared.get(self._shared.pairs, shape_key((start, y, *input_form(x))), build)

    def _compile_pair(self, start: StepInput, x: Inputs, y: Targets, query: _Query | None) -> _Pair:
        def both(
            start: StepInput, x: Inputs, y: Targets, cotangents: Cotangents, weight: Tensor
        ) -> tuple[StepOutput, StepGradients]:
            output, saved = self._traced.forward(start, x, y, save=True)
            assert saved is not None
            return output, self._traced.pull_back(saved, cotangents, weight)

        device = first_tensor(y).device
        if not has_float64(device):
            raise ValueError(f"compiled steps need float64, which {device.type} does not have")
        weight = torch.zeros((), dtype=torch.float64, device=device)
        # New tensors, because tracing identifies inputs by object identity.
        cotangents = Cotangents(
            *(
                {
                    name: torch.zeros_like(value, memory_format=torch.contiguous_format)
                    for name, value in part.items()
                }
                for part in (start.params, start.state)
            )
        )
        arguments = (start, x, y, cotangents, weight)
        kept = find(both, arguments, "pair", self._saved_dtype)
        structure, leaves, inputs = kept.structure, flatten(arguments), len(flatten((start, x, y)))
        outputs = len(flatten(tree_unflatten(list(range(structure.num_leaves)), structure)[0]))
        rows = None
        if self._by_rows:
            objective = self._eager.objective
            loss = objective.losses.support
            rows = conditioning_by_rows(objective.model, self._by_rows, loss, start.params, x, y)
        if kept.functions:
            step, pull_back = kept.functions
            return _Pair(step, pull_back, outputs, structure, kept.saved_bytes, rows)
        _start_cpp_compiler(y)
        graph, _ = trace_graph(both, arguments)
        apply(REWRITE, graph)
        parts = partition(graph, inputs, outputs, self._saved_dtype)
        key = None if query is None else _query_key(start.params, *query)
        # The largest graph first: its C++ compiles while Python lowers the others. It reads the tensors that
        # the step saves, whose shapes and strides are therefore predicted and checked afterwards.
        expected = expected_results(parts.forward, leaves[:inputs])[outputs:]
        with overlap_cpp_compilation(weight.device):
            pull_back = compile_graph(parts.backward, [*leaves, *expected])
            step = compile_graph(parts.forward, leaves[:inputs])
            compiled = None
            if query is not None and key not in self._shared.queries:
                compiled = self._query_code(start.params, *query)
        with torch.no_grad():
            saved = step(*leaves[:inputs])[outputs:]
        if tensor_forms(saved) != tensor_forms(expected):
            pull_back = compile_graph(parts.backward, [*leaves, *saved])
        kept.keep([step, pull_back], [leaves[:inputs], [*leaves, *saved]], storage_bytes(saved))
        if compiled is not None:  # last, when nothing can fail any more
            self._shared.queries[key] = compiled.keep()
        return _Pair(step, pull_back, outputs, structure, storage_bytes(saved), rows)


def _start_cpp_compiler(y: Targets) -> None:
    if first_tensor(y).device.type == "cpu":
        start_cpp_compiler(_load_own_routines)


def _load_own_routines() -> None:
    """Compile the C++ routines early: nearly all networks need them, and each takes two seconds."""
    for load in (load_convolution, load_gradient, load_direct_gradient, load_few_channels):
        load(torch.float32)


def _query_key(params: Params, x: Inputs, y: Targets) -> Any:
    return shape_key((params, y, *input_form(x)))
