"""The trajectory θ(0)..θ(K) of inner steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple

from torch import Tensor

from firststep.adaptation.stateless import check_stateless
from firststep.adaptation.step import Aux, inner_step
from firststep.losses import Loss, Residuals, cross_entropy
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule, require_rule
from firststep.task import Inputs, Targets, as_samples


class Trajectory(NamedTuple):
    """The parameters on the way from θ(0) to θ(K), and what each step left behind.

    Examples:
        >>> trajectory = functional.adapt(model, rule, support_x, support_y, steps=3)
        >>> len(trajectory.params), len(trajectory.aux), trajectory.adapted is trajectory.params[-1]
        (4, 3, True)
    """

    params: list[Params]
    """θ(0)..θ(K): one more than there are steps."""
    aux: list[Aux]
    """The auxiliary results of each step, at the parameters before it: stages 0..K-1."""

    @property
    def adapted(self) -> Params:
        return self.params[-1]


def adapt(
    model: FunctionalModule,
    rule: Rule,
    x: Inputs,
    y: Targets,
    *,
    steps: int = 5,
    params: Mapping[str, Tensor] | None = None,
    rule_params: Mapping[str, Tensor] | None = None,
    loss: Loss = cross_entropy,
    subset: str | Iterable[str] | None = None,
    residuals: Residuals | None = None,
    create_graph: bool = False,
) -> Trajectory:
    """Adapt to a support set in ``steps`` inner steps and keep all the parameters on the way.

    Without ``create_graph`` it holds no graph and no activations: only K+1 parameter dicts. None of them
    shares memory with the module, so that training it further does not change them.

    Args:
        model: the network.
        rule: the update rule.
        x: the support set.
        y: its targets; for classes 0..ways-1.
        steps: how many.
        params: the initial parameters, of which :meth:`FunctionalModule.initial_params` makes θ(0); default
            the module's.
        rule_params: the rule's parameters; default as ``rule.init`` makes them.
        loss: the loss of the support set.
        subset: also give the Gram matrix for this parameter subset at every stage 0..K-1.
        residuals: which residuals it is of; default all.
        create_graph: keep the whole trajectory differentiable in ``params`` and ``rule_params``.

    Examples:
        >>> trajectory = functional.adapt(model, rule, support_x, support_y, steps=3, subset="cls")
        >>> [fs.numerical_rank(aux.gram).item() for aux in trajectory.aux]
        [10, 10, 10]
    """
    if steps < 0:
        raise ValueError(f"steps must not be negative, it is {steps}")
    require_rule(rule)
    y = as_samples(x, y, as_target=loss.as_target)
    start = model.params() if params is None else dict(params)
    if not create_graph:
        start = {name: value.detach() for name, value in start.items()}
    if params is None and not create_graph:
        start = {name: value.clone() for name, value in start.items()}
    rule_params = rule.init(model, start) if rule_params is None else rule_params
    start = model.initial_params(start, *loss.labels(y))
    trajectory = Trajectory([start], [])
    steps_taken = iterate_steps(
        model,
        rule,
        start,
        rule_params,
        x,
        y,
        loss=loss,
        subset=subset,
        residuals=residuals,
        create_graph=create_graph,
    )
    for _ in range(steps):
        new, aux = next(steps_taken)
        trajectory.params.append(new)
        trajectory.aux.append(aux)
    return trajectory


def iterate_steps(
    model: FunctionalModule,
    rule: Rule,
    params: Mapping[str, Tensor],
    rule_params: Mapping[str, Tensor],
    x: Inputs,
    y: Targets,
    *,
    loss: Loss = cross_entropy,
    subset: str | Iterable[str] | None = None,
    residuals: Residuals | None = None,
    create_graph: bool = False,
) -> Iterator[tuple[Params, Aux]]:
    """Inner steps without end, one at a time: for trajectories too long to keep.

    Examples:
        >>> steps = functional.iterate_steps(model, rule, params, {}, support_x, support_y)
        >>> losses = [next(steps)[1].loss.item() for _ in range(4)]
        >>> losses == sorted(losses, reverse=True)
        True
    """
    require_rule(rule)
    y = as_samples(x, y, as_target=loss.as_target)
    model.check_params(params)
    model.observe(params, x)
    start = model.initial_params(params, *loss.labels(y))
    check_stateless(model, rule, start, rule_params, x, y, loss)
    options: dict[str, Any] = {
        "loss": loss,
        "subset": subset,
        "residuals": residuals,
        "create_graph": create_graph,
    }
    return _steps(model, rule, start, rule_params, x, y, model.task_seed(), options)


def _steps(
    model: FunctionalModule,
    rule: Rule,
    params: Mapping[str, Tensor],
    rule_params: Mapping[str, Tensor],
    x: Inputs,
    y: Targets,
    seed: int | None,
    options: dict[str, Any],
) -> Iterator[tuple[Params, Aux]]:
    current = dict(params)
    state = rule.initial_state(model, current)
    for step in count():
        with model.one_task(seed):
            current, aux = inner_step(
                model, rule, current, rule.at_step(rule_params, step), x, y, state=state, **options
            )
        state = aux.state
        yield current, aux
