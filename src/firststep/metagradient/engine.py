"""The meta-gradient of a batch of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from firststep.allocator import freed_memory_kept
from firststep.metagradient.meta_batch import of_each
from firststep.metagradient.objective import Conditioning, check_query_weights
from firststep.metagradient.result import MetaGradientResult
from firststep.metagradient.stepwise import Stepwise
from firststep.metagradient.unrolled import Unrolled
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule
from firststep.task import Task

ENGINES = ("stepwise", "unrolled")


class MetaGradient:
    """The exact gradient of Σ_tasks [query loss at θ(K) + γ Σ_k w_k c(G(θ(k-1)))].

    The query loss may also be a weighted sum of those at θ(1)..θ(K): see ``query_weights`` of a call.

    Build it once and call it with every meta-batch: compiled functions are kept.

    While it computes, the C library is told to keep the memory that tensors free for the next ones, where it
    can be told (glibc) and you have made no settings of your own (``MALLOC_...``, ``GLIBC_TUNABLES``). That
    takes some memory: ``memory=0`` leaves it.

    Args:
        model: the network.
        rule: the update rule of the inner loop.
        steps: inner steps K.
        conditioning: the conditioning term; None for none.
        engine: ``stepwise``, whose memory does not grow with K, or ``unrolled``, one big graph.
        compile: compile the step and its pull-back (stepwise only): about a minute at the first call with
            a new shape, and faster from then on.
        memory: bytes that the last inner steps may take to keep what they computed for the way back
            (stepwise only). Steps that do not fit are computed once more: the same numbers, more time.
            A number of bytes, not what is free at the moment: so that a run repeats bit for bit.
            Compiled conditioning below the last layers keeps up to 512 MiB of its own besides.
            Default: at most five steps within 384 MiB, so that the peak stays the same whatever K is.
        streams: on a GPU, the CUDA streams that the tasks of a meta-batch are dealt over, so that small
            networks fill the device. Memory grows with it; the numbers stay the same. A CPU has none.
    """

    def __init__(
        self,
        model: FunctionalModule,
        rule: Rule,
        *,
        steps: int = 5,
        conditioning: Conditioning | None = None,
        engine: str = "stepwise",
        compile: bool = False,
        memory: int | None = None,
        streams: int = 1,
    ) -> None:
        if steps < 1:
            raise ValueError(f"steps must be at least 1, it is {steps}")
        if engine not in ENGINES:
            raise ValueError(f"unknown engine {engine!r}; there are {', '.join(ENGINES)}")
        if compile and engine == "unrolled":
            raise ValueError("compile works with engine='stepwise' only: the unrolled graph is too large")
        if memory is not None and memory < 0:
            raise ValueError(f"memory must be a number of bytes, 0 to keep nothing, not {memory}")
        if streams < 1:
            raise ValueError(f"streams must be at least 1, it is {streams}")
        if conditioning is not None:
            conditioning.weights(steps)  # refuses a wrong number of them
            model.subset(conditioning.subset)  # and parameters that are not there
            if conditioning.weight == 0:
                conditioning = None
        rule.moving(model)  # refuses a network for which the rule is not defined
        self._task = (
            Stepwise(model, rule, steps, conditioning, compile, memory)
            if engine == "stepwise"
            else Unrolled(model, rule, steps, conditioning)
        )
        self._freed_memory = nullcontext if memory == 0 else freed_memory_kept
        self.gamma = conditioning.weight if conditioning else 0.0
        self.streams = streams

    def __call__(
        self,
        params: Params,
        own: Params,
        tasks: Sequence[Task],
        *,
        query_weights: Sequence[float] | None = None,
    ) -> MetaGradientResult:
        """The gradient summed over ``tasks``.

        Args:
            params: θ(0).
            own: the rule's own parameters.
            tasks: the meta-batch.
            query_weights: of the query losses after steps 1..K; default only the last counts. Each other
                weight that is not 0 costs a pass over the query set.
        """
        results = self.each(params, own, tasks, query_weights=query_weights)
        total_params: Params = {}
        total_own: Params = {}
        for result in results:
            total_params = _add(total_params, result.params)
            total_own = _add(total_own, result.own)
        return MetaGradientResult(
            params=total_params,
            own=total_own,
            loss=torch.stack([result.loss for result in results]).sum(),
            tasks=[result.tasks[0] for result in results],
        )

    def each(
        self,
        params: Params,
        own: Params,
        tasks: Sequence[Task],
        *,
        query_weights: Sequence[float] | None = None,
    ) -> list[MetaGradientResult]:
        """The gradient of each task by itself, in their order; arguments as of a call."""
        if not tasks:
            raise ValueError("tasks must not be empty")
        weights = check_query_weights(query_weights, self._task.steps)
        with self._freed_memory():
            computed = of_each(lambda task: self._task(params, own, task, weights), tasks, self.streams)
        return [
            MetaGradientResult(
                params=for_params,
                own=for_own,
                loss=report.weighted_query_loss.double() + self.gamma * report.conditioning,
                tasks=[report],
            )
            for for_params, for_own, report in computed
        ]


def _add(total: Params, new: Params) -> Params:
    return {name: total[name] + value for name, value in new.items()} if total else dict(new)


def meta_gradient(
    model: FunctionalModule,
    rule: Rule,
    tasks: Sequence[Task],
    *,
    params: Mapping[str, Tensor] | None = None,
    own: Mapping[str, Tensor] | None = None,
    steps: int = 5,
    conditioning: Conditioning | None = None,
    engine: str = "stepwise",
    compile: bool = False,
    memory: int | None = None,
    streams: int = 1,
    query_weights: Sequence[float] | None = None,
) -> MetaGradientResult:
    """One call of :class:`MetaGradient`, which explains the arguments.

    ``params`` default to the module's own and ``own`` to what ``rule.init`` makes.
    """
    theta = model.params() if params is None else dict(params)
    mine = rule.init(model, theta) if own is None else dict(own)
    compute = MetaGradient(
        model,
        rule,
        steps=steps,
        conditioning=conditioning,
        engine=engine,
        compile=compile,
        memory=memory,
        streams=streams,
    )
    return compute(theta, mine, tasks, query_weights=query_weights)
