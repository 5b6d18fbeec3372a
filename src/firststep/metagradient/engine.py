"""The meta-gradient of a batch of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from firststep.adaptation import Learner, check_stateless
from firststep.conditioning import in_float64
from firststep.losses import Loss, cross_entropy
from firststep.metagradient.forward import task_report
from firststep.metagradient.meta_batch import MetaBatch
from firststep.metagradient.objective import Conditioning, Losses, Objective, Start, check_query_weights
from firststep.metagradient.options import EngineOptions
from firststep.metagradient.result import MetaGradientResult, TaskReport
from firststep.metagradient.stepwise import Stepwise
from firststep.metagradient.unrolled import Unrolled
from firststep.network import FunctionalModule, Params, check_precision, networks_in
from firststep.rules import Rule, require_rule
from firststep.task import AsTarget, Task, as_task, as_tasks


class MetaGradient:
    """The exact gradient of Σ_tasks [query loss at θ(K) + γ Σ_k w_k c(G(θ(k-1)))].

    The query loss may also be a weighted sum over θ(1)..θ(K): see ``query_weights`` of a call.

    Build it once and call it with every meta-batch, so that compiled functions are reused.

    On Linux it is faster in a process that has called :func:`firststep.keep_freed_memory`.

    Args:
        model: the network.
        rule: the update rule of the inner loop.
        steps: number of inner steps K.
        conditioning: the conditioning loss, or None.
        loss: the loss per sample of the support set; default cross-entropy.
        query_loss: the loss per sample of the query set; default ``loss``.
        options: engine, compilation and memory; default :class:`EngineOptions`.

    Examples:
        >>> gradient = functional.MetaGradient(model, rule, steps=2, conditioning=fs.Conditioning())
        >>> result = gradient(params, {}, [task])
        >>> sorted(result.params) == sorted(model.params())
        True
    """

    def __init__(
        self,
        model: FunctionalModule,
        rule: Rule,
        *,
        steps: int = 5,
        conditioning: Conditioning | None = None,
        loss: Loss = cross_entropy,
        query_loss: Loss | None = None,
        options: EngineOptions | None = None,
    ) -> None:
        if steps < 1:
            raise ValueError(f"steps must be at least 1, it is {steps}")
        options = options or EngineOptions()
        if options.compile and model.randomness == "same":
            raise ValueError("randomness='same' needs compile=False: compiled code draws other numbers")
        if conditioning is not None:
            conditioning.weights(steps)  # refuses a wrong number of weights
            model.check_spectrum(conditioning.subset)  # and a subset that is missing or has no spectrum
            loss.residual_kind(conditioning.residuals)  # and residuals that the loss lacks
            if conditioning.weight == 0:
                conditioning = None
        require_rule(rule).check_network(model)
        self.objective = Objective(model, rule, steps, conditioning, Losses(loss, query_loss or loss))
        engine = (
            Stepwise(self.objective, options) if options.engine == "stepwise" else Unrolled(self.objective)
        )
        self._known_non_negative = conditioning is None or loss.non_negative
        self.gamma = float(conditioning.weight) if conditioning else 0.0
        self._dtype = check_precision(options.precision)
        self._batch = MetaBatch(engine, self._dtype)

    def __call__(
        self,
        params: Params,
        rule_params: Params,
        tasks: Sequence[Task | tuple[Any, ...]],
        *,
        query_weights: Sequence[float] | None = None,
    ) -> MetaGradientResult:
        """Return the gradient summed over ``tasks``.

        Args:
            params: the initial parameters, from which :meth:`FunctionalModule.initial_params` makes θ(0).
            rule_params: the rule's parameters.
            tasks: the meta-batch; each a Task or a tuple (support_x, support_y, query_x, query_y).
            query_weights: weights of the query losses after steps 1..K; default only the last counts. Every
                other non-zero weight costs a pass over the query set.
        """
        results = self.each(params, rule_params, tasks, query_weights=query_weights)
        total_params: Params = {}
        total_rule_params: Params = {}
        for result in results:
            total_params = _add(total_params, result.params)
            total_rule_params = _add(total_rule_params, result.rule_params)
        return MetaGradientResult(
            params=total_params,
            rule_params=total_rule_params,
            loss=torch.stack([result.loss for result in results]).sum(),
            tasks=[result.tasks[0] for result in results],
        )

    def loss(
        self,
        params: Params,
        rule_params: Params,
        tasks: Sequence[Task | tuple[Any, ...]],
        *,
        query_weights: Sequence[float] | None = None,
    ) -> MetaGradientResult:
        """Return the same loss and reports with empty gradients; arguments as in a call."""
        weights = check_query_weights(query_weights, self.objective.steps)
        phi = _detached(rule_params)

        def compute(start: Start) -> TaskReport:
            dtype = networks_in(self._dtype, next(iter(start.params.values())))
            with dtype, self.objective.model.one_task():
                return task_report(self.objective, start.params, phi, start.task, weights)

        checked = as_tasks(tasks, *self._as_targets)
        reports = [compute(start) for start in self._starts(_detached(params), phi, checked)]
        loss = torch.stack([self._outer_loss(report) for report in reports]).sum()
        return MetaGradientResult(params={}, rule_params={}, loss=loss, tasks=reports)

    def each(
        self,
        params: Params,
        rule_params: Params,
        tasks: Sequence[Task | tuple[Any, ...]],
        *,
        query_weights: Sequence[float] | None = None,
    ) -> list[MetaGradientResult]:
        """Return the gradient per task, in order; arguments as in a call."""
        if not tasks:
            raise ValueError("tasks must not be empty")
        return list(
            self.iterate(params, rule_params, tasks, query_weights=query_weights, several=len(tasks) > 1)
        )

    def iterate(
        self,
        params: Params,
        rule_params: Params,
        tasks: Iterable[Task | tuple[Any, ...]],
        *,
        query_weights: Sequence[float] | None = None,
        several: bool = True,
    ) -> Iterator[MetaGradientResult]:
        """Yield the gradient per task, in order, while they are computed.

        Args:
            params: as in a call.
            rule_params: as in a call.
            tasks: the meta-batch, or this process's part of it; only a few are read ahead.
            query_weights: as in a call.
            several: whether the whole meta-batch has more than one task. Small tasks then run side by side on
                a
                CPU, each with its own threads. Rounding may differ from that of one task on all threads.
        """
        weights = check_query_weights(query_weights, self.objective.steps)
        phi = _detached(rule_params)
        starts = self._starts(_detached(params), phi, (as_task(task, *self._as_targets) for task in tasks))
        first = next(starts, None)
        if first is None:
            return
        computed = self._batch(phi, first, chain([first], starts), weights, several)
        for for_params, for_rule_params, report in computed:
            yield MetaGradientResult(
                params=for_params,
                rule_params=for_rule_params,
                loss=self._outer_loss(report),
                tasks=[report],
            )

    def _starts(self, params: Params, rule_params: Params, tasks: Iterable[Task]) -> Iterator[Start]:
        """Yield each task with its θ(0); with the first, check network, rule and loss at their first use."""
        for number, task in enumerate(tasks):
            if number == 0:
                self.objective.model.check_params(params)
                self.objective.model.observe(params, task.support_x)
            start = self.objective.start(params, task)
            if number == 0:
                learner = self.objective.learner(start.params, rule_params)
                check_stateless(learner, task.support_x, task.support_y)
                self._refuse_negative(start)
            yield start

    @property
    def _as_targets(self) -> tuple[AsTarget, AsTarget]:
        return self.objective.losses.support.as_target, self.objective.losses.query.as_target

    def _refuse_negative(self, start: Start) -> None:
        """Refuse a loss that is negative on the first task: it is not the square of any residual."""
        if self._known_non_negative:
            return
        model, loss, task = self.objective.model, self.objective.losses.support, start.task
        with torch.no_grad(), model.one_task():
            values = loss(model(start.params, task.support_x).logits, task.support_y)
        if values.device.type != "meta" and bool((values < 0).any()):
            raise ValueError(
                f"loss {loss.name} is negative ({values.min().item():.3g}), but conditioning takes residuals "
                "sqrt(loss): add a constant that makes it non-negative, or use conditioning=None"
            )
        self._known_non_negative = True

    def _outer_loss(self, report: TaskReport) -> Tensor:
        return in_float64(report.weighted_query_loss) + self.gamma * report.conditioning


def _detached(params: Mapping[str, Tensor]) -> Params:
    return {name: value.detach() for name, value in params.items()}


def _add(total: Params, new: Params) -> Params:
    return {name: total[name] + value for name, value in new.items()} if total else dict(new)


def meta_gradient(
    learner: Learner,
    tasks: Sequence[Task | tuple[Any, ...]],
    *,
    steps: int = 5,
    conditioning: Conditioning | None = None,
    query_loss: Loss | None = None,
    options: EngineOptions | None = None,
    query_weights: Sequence[float] | None = None,
) -> MetaGradientResult:
    """Call a new :class:`MetaGradient` once, at the parameters of ``learner``.

    Examples:
        >>> stepwise, unrolled = (
        ...     functional.meta_gradient(
        ...         learner, [task], steps=2, options=functional.EngineOptions(engine=engine)
        ...     ).params
        ...     for engine in ("stepwise", "unrolled")
        ... )
        >>> torch.allclose(stepwise["classifier.weight"], unrolled["classifier.weight"], atol=1e-6)
        True
    """
    compute = MetaGradient(
        learner.model,
        learner.rule,
        steps=steps,
        conditioning=conditioning,
        loss=learner.loss,
        query_loss=query_loss,
        options=options,
    )
    return compute(learner.params, learner.rule_params, tasks, query_weights=query_weights)
