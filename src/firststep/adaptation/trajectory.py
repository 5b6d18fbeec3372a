"""The trajectory θ(0)..θ(K) of inner steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, islice
from typing import Any, NamedTuple

from firststep.adaptation.learner import Learner
from firststep.adaptation.stateless import check_stateless
from firststep.adaptation.step import Aux, inner_step
from firststep.losses import Residuals
from firststep.network import Params
from firststep.task import Inputs, Targets, as_samples


class Trajectory(NamedTuple):
    """The parameters θ(0)..θ(K) and the auxiliary results of each step.

    Examples:
        >>> trajectory = functional.adapt(learner, support_x, support_y, steps=3)
        >>> len(trajectory.params), len(trajectory.aux), trajectory.adapted is trajectory.params[-1]
        (4, 3, True)
    """

    params: list[Params]
    """θ(0)..θ(K): one more entry than steps."""
    aux: list[Aux]
    """The auxiliary results of each step, at the parameters before it: stages 0..K-1."""

    @property
    def adapted(self) -> Params:
        return self.params[-1]


def adapt(
    learner: Learner,
    x: Inputs,
    y: Targets,
    *,
    steps: int = 5,
    subset: str | Iterable[str] | None = None,
    residuals: Residuals | None = None,
    create_graph: bool = False,
) -> Trajectory:
    """Adapt to a support set in ``steps`` inner steps and keep the parameters after every step.

    Without ``create_graph`` it keeps no graph and no activations, only K+1 parameter dicts. None of them
    shares memory with the learner, so later training does not change them.

    Args:
        learner: network, rule and loss with the initial parameters, from which
            :meth:`firststep.functional.FunctionalModule.initial_params` makes θ(0).
        x: inputs of the support set.
        y: its targets; for classes 0..ways-1.
        steps: number of steps.
        subset: also return the Gram matrix for this parameter subset at every stage 0..K-1.
        residuals: kind of its residuals; default all.
        create_graph: keep the whole trajectory differentiable in the learner's parameters.

    Examples:
        >>> trajectory = functional.adapt(learner, support_x, support_y, steps=3, subset="cls")
        >>> [fs.numerical_rank(aux.gram).item() for aux in trajectory.aux]
        [10, 10, 10]
    """
    if steps < 0:
        raise ValueError(f"steps must not be negative, it is {steps}")
    if not create_graph:
        learner = learner.at({name: value.detach().clone() for name, value in learner.params.items()})
    start = start_task(learner, x, y)
    taken = steps_from(start, x, y, subset=subset, residuals=residuals, create_graph=create_graph)
    trajectory = Trajectory([start.params], [])
    for params, aux in islice(taken, steps):
        trajectory.params.append(params)
        trajectory.aux.append(aux)
    return trajectory


def iterate_steps(learner: Learner, x: Inputs, y: Targets, **options: Any) -> Iterator[tuple[Params, Aux]]:
    """Yield inner steps endlessly, one at a time: for trajectories too long to keep.

    Args:
        learner: network, rule and loss with the initial parameters.
        x: inputs of the support set.
        y: its targets.
        options: ``subset``, ``residuals`` and ``create_graph`` as :func:`adapt` takes them.

    Examples:
        >>> steps = functional.iterate_steps(learner, support_x, support_y)
        >>> losses = [next(steps)[1].loss.item() for _ in range(4)]
        >>> losses == sorted(losses, reverse=True)
        True
    """
    return steps_from(start_task(learner, x, y), x, y, **options)


def start_task(learner: Learner, x: Inputs, y: Targets) -> Learner:
    """Return the learner at θ(0) of a task; refuse parameters, networks and rules that cannot be used."""
    y = as_samples(x, y, as_target=learner.loss.as_target)
    learner.model.check_params(learner.params)
    learner.model.observe(learner.params, x)
    labels = learner.loss.labels(y)
    start = learner.at(learner.model.initial_params(learner.params, *labels, support=x))
    check_stateless(start, x, y)
    return start


def steps_from(start: Learner, x: Inputs, y: Targets, **options: Any) -> Iterator[tuple[Params, Aux]]:
    """Return the steps of :func:`iterate_steps` from a learner that is already at θ(0)."""
    return _steps(start, x, y, start.model.task_seed(), options)


def _steps(
    learner: Learner, x: Inputs, y: Targets, seed: int | None, options: dict[str, Any]
) -> Iterator[tuple[Params, Aux]]:
    rule, params = learner.rule, learner.params
    state = rule.initial_state(learner.model, params)
    for step in count():
        now = learner.at(params, rule.at_step(learner.rule_params, step))
        with learner.model.one_task(seed):
            params, aux = inner_step(now, x, y, state=state, **options)
        state = aux.state
        yield params, aux
