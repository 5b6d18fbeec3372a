"""The trajectory θ(0)..θ(K) of inner steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import NamedTuple

from torch import Tensor

from firststep.adaptation.step import Seen, inner_step
from firststep.network import FunctionalModule, Params
from firststep.rules import Rule


class Trajectory(NamedTuple):
    params: list[Params]
    """θ(0)..θ(K): one more than there are steps."""
    seen: list[Seen]
    """What each step saw at the parameters before it: stages 0..K-1."""

    @property
    def adapted(self) -> Params:
        return self.params[-1]


def adapt(
    model: FunctionalModule,
    rule: Rule,
    images: Tensor,
    labels: Tensor,
    *,
    steps: int = 5,
    params: Mapping[str, Tensor] | None = None,
    own: Mapping[str, Tensor] | None = None,
    subset: str | Iterable[str] | None = None,
    create_graph: bool = False,
) -> Trajectory:
    """Adapt to a support set in ``steps`` inner steps and keep all the parameters on the way.

    Without ``create_graph`` it holds no graph and no activations: only K+1 parameter dicts.

    Args:
        model: the network.
        rule: the update rule.
        images: the support set.
        labels: its labels, 0..ways-1.
        steps: how many.
        params: the initial parameters θ(0); default the module's own.
        own: the rule's own parameters; default as ``rule.init`` makes them.
        subset: also give the Gram matrix for this parameter subset at every stage 0..K-1.
        create_graph: keep the whole trajectory differentiable in ``params`` and ``own``.
    """
    if steps < 0:
        raise ValueError(f"steps must not be negative, it is {steps}")
    start = model.params() if params is None else dict(params)
    own = rule.init(model, start) if own is None else own
    trajectory = Trajectory([start], [])
    walker = walk(model, rule, start, own, images, labels, subset=subset, create_graph=create_graph)
    for _ in range(steps):
        new, seen = next(walker)
        trajectory.params.append(new)
        trajectory.seen.append(seen)
    return trajectory


def walk(
    model: FunctionalModule,
    rule: Rule,
    params: Mapping[str, Tensor],
    own: Mapping[str, Tensor],
    images: Tensor,
    labels: Tensor,
    *,
    subset: str | Iterable[str] | None = None,
    create_graph: bool = False,
) -> Iterator[tuple[Params, Seen]]:
    """Inner steps without end, one at a time: for walks too long to keep."""
    current = dict(params)
    for step in count():
        current, seen = inner_step(
            model,
            rule,
            current,
            rule.at_step(own, step),
            images,
            labels,
            subset=subset,
            create_graph=create_graph,
        )
        yield current, seen
