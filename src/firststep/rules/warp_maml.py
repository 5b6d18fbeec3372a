"""Warp-MAML: plain gradient descent in a network with layers that only the outer loop learns."""

from __future__ import annotations

from functools import partial

from firststep.network import FunctionalModule
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.rule import Rule, descend, no_parameters, require_rate


def warp_maml(rate: float = DEFAULT_RATE) -> Rule:
    """-α g on all but the warp layers (Flennerhag et al., "Warped Gradient Descent", ICLR 2020).

    The preconditioning is in the network: see :class:`firststep.backbones.WarpedConv`. The warp layers are
    parameters of the network like any other to the meta-gradient, and to the subsets ``body`` and ``all`` of
    the conditioning loss; they are no parameters of the rule. Any network will do that names the submodules
    which the inner loop leaves alone in its attribute ``outer_loop_only``.

    Examples:
        >>> warped = fs.warp(network)
        >>> moved = fs.warp_maml(rate=0.1).moving(functional.FunctionalModule(warped))
        >>> [name for name in moved if "warps" in name]
        []
    """
    rate = require_rate(rate)
    return Rule(
        name="warp-maml", init=no_parameters, update=partial(descend, rate=rate), moves=_all_but_the_warps
    )


def _all_but_the_warps(model: FunctionalModule) -> tuple[str, ...]:
    paths = getattr(model.module, "outer_loop_only", None)
    if not paths:
        raise ValueError(
            "the method warp-maml needs a network with warp layers: build the model on "
            f"firststep.backbones.warp(module), not on a {type(model.module).__name__}"
        )
    prefixes = tuple(f"{path}." for path in paths)
    return tuple(name for name in model.subset("all") if not name.startswith(prefixes))
