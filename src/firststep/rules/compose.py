"""Rules from functions and from other rules: ``stateless``, ``clip_by_norm`` and ``chain``, after optax."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

import torch

from firststep.network import FunctionalModule, Params
from firststep.rules.rule import Moves, Rule, SupportLoss, Update, build_rule, no_parameters, require_positive


def stateless(
    function: Callable[[Params, Params], Params], *, name: str | None = None, moves: Moves = "all"
) -> Rule:
    """Make a rule without parameters from a pure function ``(gradients, parameters) → steps``.

    The function is differentiated and is called more than once per step. The first use of the rule checks
    that it is pure.

    Args:
        function: takes two dicts by parameter name, and returns what is added to each parameter. Inside
            :func:`chain` the result of all but the last rule is the gradient for the next rule.
        name: the rule's name in messages; default the function's name.
        moves: the parameters that the inner loop changes, as in :func:`firststep.maml`.

    Examples:
        >>> def signs(grads, params):
        ...     return {name: -0.01 * grad.sign() for name, grad in grads.items()}
        >>> fs.MetaLearner(network, fs.stateless(signs)).rule.name
        'signs'
    """
    shown = str(getattr(function, "__name__", "stateless")) if name is None else name
    return build_rule(shown, partial(_without_parameters, function), moves, stateless=False)


def clip_by_norm(bound: float, moves: Moves = "all") -> Rule:
    """Scale the gradient of all moving parameters down to the norm ``bound`` if it is longer.

    Put it before another rule with :func:`chain`. The norm is taken over all moving parameters together, and
    the meta-gradient goes through it.

    Examples:
        >>> rule = fs.chain(fs.clip_by_norm(1.0), fs.meta_sgd(rate=0.1))
        >>> rule.name
        'clip-by-norm | meta-sgd'
    """
    return build_rule("clip-by-norm", partial(_clip, bound=require_positive("bound", bound)), moves)


def chain(*rules: Rule, name: str | None = None) -> Rule:
    """Compose rules: the result of each rule is the gradient that the next rule takes.

    The last rule makes the step and decides which parameters move. Each earlier rule must move them too.
    The rules' parameters are learned together; those of rule i have names that begin with ``i.``.

    Args:
        rules: in the order in which they are applied.
        name: the rule's name in messages; default the names of the rules.

    Raises:
        ValueError: there are no rules, or some have parameters per step (maml++) and others have not.

    Examples:
        >>> rule = fs.chain(fs.clip_by_norm(1.0), fs.meta_sgd(rate=0.1, moves="cls"))
        >>> rule.moving(model)
        ('classifier.weight', 'classifier.bias')
        >>> list(rule.init(model, model.params()))
        ['1.rate.classifier.weight', '1.rate.classifier.bias']
    """
    if not rules:
        raise ValueError("chain needs at least one rule")
    shown = " | ".join(rule.name for rule in rules) if name is None else name
    with_parameters = [rule for rule in rules if rule.init is not no_parameters]
    if len({rule.per_step for rule in with_parameters}) > 1:
        per_step = next(rule.name for rule in with_parameters if rule.per_step)
        raise ValueError(f"chain: {per_step} has parameters per step, so every other rule must have so too")
    return Rule(
        name=shown,
        init=partial(_init_chain, rules) if with_parameters else no_parameters,
        update=partial(_update_chain, rules),
        moves=partial(_moves_of_chain, rules),
        first_order=any(rule.first_order for rule in rules),
        stateless=all(rule.stateless for rule in rules),
        per_step=any(rule.per_step for rule in with_parameters),
    )


def scaled(rule: Rule, multiplier: float) -> Rule:
    """Return the rule with every step ``multiplier`` times as long, for fewer but bigger steps at inference.

    The gradient is scaled before the rule sees it. This scales the step of most rules. There are three
    exceptions: ModGrad chooses its mask for the longer step, :func:`firststep.clip_by_norm` clips the longer
    gradient, and values that a rule *sets*, such as MAML++'s batch-norm scales, stay as learned.

    Examples:
        >>> from firststep.rules import scaled
        >>> bigger = functional.adapt(model, scaled(rule, 3), support_x, support_y, steps=1).adapted
        >>> same = functional.adapt(model, fs.maml(rate=0.3), support_x, support_y, steps=1).adapted
        >>> torch.allclose(bigger["classifier.bias"], same["classifier.bias"])
        True
    """
    return dataclasses.replace(rule, update=partial(_scaled_update, rule.update, multiplier))


def _without_parameters(
    function: Callable[[Params, Params], Params],
    grads: Params,
    params: Params,
    rule_params: Params,
    loss: SupportLoss,
) -> Params:
    return function(grads, params)


def _clip(grads: Params, params: Params, rule_params: Params, loss: SupportLoss, *, bound: float) -> Params:
    squares = torch.stack([(grad / bound).square().sum() for grad in grads.values()]).sum()
    # The square is clamped, not the norm: the square root has no finite derivative at a zero gradient.
    scale = squares.clamp_min(1.0).rsqrt()
    return {name: scale * grad for name, grad in grads.items()}


def _init_chain(
    rules: tuple[Rule, ...],
    model: FunctionalModule,
    params: Params,
    generator: torch.Generator | None = None,
) -> Params:
    return {
        f"{number}.{name}": value
        for number, rule in enumerate(rules)
        for name, value in rule.init(model, params, generator).items()
    }


def _update_chain(
    rules: tuple[Rule, ...], grads: Params, params: Params, rule_params: Params, loss: SupportLoss
) -> Params:
    for number, rule in enumerate(rules):
        prefix = f"{number}."
        own = {
            name.removeprefix(prefix): value for name, value in rule_params.items() if name.startswith(prefix)
        }
        grads = rule.update(grads, params, own, loss)
    return grads


def _moves_of_chain(rules: tuple[Rule, ...], model: FunctionalModule) -> tuple[str, ...]:
    *earlier, last = rules
    names = last.moving(model)
    for rule in earlier:
        missing = [name for name in names if name not in rule.moving(model)]
        if missing:
            raise ValueError(
                f"chain: {last.name} moves {missing[0]}, which {rule.name} does not move: "
                "give both the same `moves`"
            )
    return names


def _scaled_update(
    update: Update, multiplier: float, grads: Params, params: Params, rule_params: Params, loss: SupportLoss
) -> Params:
    longer = {name: multiplier * grad for name, grad in grads.items()}
    return update(longer, params, rule_params, loss)
