"""Warp-MAML: plain gradient descent in a network with layers that only the outer loop learns."""

from __future__ import annotations

from functools import partial

from firststep.backbones import warp
from firststep.network import FunctionalModule
from firststep.rules.gradient_descent import DEFAULT_RATE
from firststep.rules.registry import register_method
from firststep.rules.rule import Moves, Rule, build_rule, descend, require_rate


@register_method("warp-maml", prepare=warp)
def warp_maml(rate: float = DEFAULT_RATE, moves: Moves = "all") -> Rule:
    """Return the rule -α g on all but the warp layers (Flennerhag et al., ICLR 2020).

    The network does the preconditioning: see :class:`firststep.backbones.WarpedConv`. Warp layers belong to
    the network, not to the rule: the meta-gradient and the subsets ``body`` and ``all`` include them. Any
    network works that lists the submodules which the inner loop must not move in ``outer_loop_only``.

    Examples:
        >>> warped = fs.warp(network)
        >>> moved = fs.warp_maml(rate=0.1).moving(functional.FunctionalModule(warped))
        >>> [name for name in moved if "warps" in name]
        []
    """
    update = partial(descend, rate=require_rate(rate))
    return build_rule("warp-maml", update, moves, allowed=_all_but_the_warps)


def _all_but_the_warps(model: FunctionalModule, names: tuple[str, ...]) -> tuple[str, ...]:
    paths = getattr(model.module, "outer_loop_only", None)
    if not paths:
        raise ValueError(
            "the method warp-maml needs a network with warp layers: pass firststep.warp(network), "
            f"not a {type(model.module).__name__}"
        )
    prefixes = tuple(f"{path}." for path in paths)
    return tuple(name for name in names if not name.startswith(prefixes))
