"""Rules from functions and from other rules: ``stateless``, ``clip_by_norm`` and ``chain``, after optax."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

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


def weight_decay(strength: float, moves: Moves = "all") -> Rule:
    """Add ``strength`` times the parameter to its gradient: the penalty ½ λ ‖θ‖² on the support loss.

    Put it before another rule with :func:`chain`. Adam divides the penalty by the size of the gradient too;
    its own argument ``weight_decay`` does not.

    Examples:
        >>> fs.chain(fs.weight_decay(0.01), fs.momentum(rate=0.1)).name
        'weight-decay | momentum'
    """
    update = partial(_decay, strength=require_positive("strength", strength))
    return build_rule("weight-decay", update, moves)


def chain(*rules: Rule, name: str | None = None) -> Rule:
    """Compose rules: the result of each rule is the gradient that the next rule takes.

    The last rule makes the step and decides which parameters move. Each earlier rule must move them too.
    The rules' parameters are learned together; those of rule i have names that begin with ``i.``.

    Args:
        rules: in the order in which they are applied.
        name: the rule's name in messages; default the names of the rules.

    Raises:
        ValueError: there are no rules, or several make the inner loss.

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
    with_parameters = any(rule.init is not no_parameters for rule in rules)
    with_state = any(rule.init_state is not None for rule in rules)
    learned = [(number, rule) for number, rule in enumerate(rules) if rule.inner_loss is not None]
    if len(learned) > 1:
        raise ValueError(f"chain: {learned[0][1].name} and {learned[1][1].name} both make the inner loss")
    return Rule(
        name=shown,
        init=partial(_init_chain, rules) if with_parameters else no_parameters,
        update=partial(_step_chain if with_state else _update_chain, rules),
        init_state=partial(_init_state_of_chain, rules) if with_state else None,
        moves=partial(_moves_of_chain, rules),
        first_order=any(rule.first_order for rule in rules),
        stateless=all(rule.stateless for rule in rules),
        per_step=tuple(prefix for number, rule in enumerate(rules) for prefix in _with_rows(number, rule)),
        inner_loss=partial(_inner_loss_of_chain, *learned[0]) if learned else None,
        rebuild=partial(_rebuild_chain, rules, name),
    )


def _rebuild_chain(rules: tuple[Rule, ...], name: str | None, moves: Moves) -> Rule:
    return chain(*(rule.moving_only(moves) for rule in rules), name=name)


def scaled(rule: Rule, multiplier: float) -> Rule:
    """Return the rule with every step ``multiplier`` times as long, for fewer but bigger steps at inference.

    The gradient is scaled before the rule sees it, or, for a rule with state, the step after it. This scales
    the step of most rules. There are three exceptions: ModGrad chooses its mask for the longer step,
    :func:`firststep.clip_by_norm` clips the longer gradient, and values that a rule *sets*, such as MAML++'s
    batch-norm scales, stay as learned.

    Examples:
        >>> from firststep.rules import scaled
        >>> bigger, same = (
        ...     functional.adapt(functional.Learner(model, each), support_x, support_y, steps=1).adapted
        ...     for each in (scaled(rule, 3), fs.maml(rate=0.3))
        ... )
        >>> torch.allclose(bigger["classifier.bias"], same["classifier.bias"])
        True
    """
    scale = _scaled_update if rule.init_state is None else _scaled_step
    return dataclasses.replace(rule, update=partial(scale, rule.update, multiplier))


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


def _decay(
    grads: Params, params: Params, rule_params: Params, loss: SupportLoss, *, strength: float
) -> Params:
    return {name: grad + strength * params[name] for name, grad in grads.items()}


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
        grads = rule.update(grads, params, _own(rule_params, number), loss)
    return grads


def _step_chain(
    rules: tuple[Rule, ...],
    grads: Params,
    params: Params,
    rule_params: Params,
    loss: SupportLoss,
    state: Params,
) -> tuple[Params, Params]:
    new_state: Params = {}
    for number, rule in enumerate(rules):
        grads, own = rule.step(grads, params, _own(rule_params, number), loss, _own(state, number))
        new_state |= {f"{number}.{name}": value for name, value in own.items()}
    return grads, new_state


def _init_state_of_chain(rules: tuple[Rule, ...], params: Params) -> Params:
    return {
        f"{number}.{name}": value
        for number, rule in enumerate(rules)
        if rule.init_state is not None
        for name, value in rule.init_state(params).items()
    }


def _with_rows(number: int, rule: Rule) -> tuple[str, ...]:
    """Return the prefixes of the names of a rule's parameters that have a row per step."""
    if isinstance(rule.per_step, tuple):
        return tuple(f"{number}.{prefix}" for prefix in rule.per_step)
    return (f"{number}.",) if rule.per_step else ()


def _inner_loss_of_chain(
    number: int, rule: Rule, mean_loss: Tensor, support: SupportLoss, params: Params, rule_params: Params
) -> Tensor:
    assert rule.inner_loss is not None
    return rule.inner_loss(mean_loss, support, params, _own(rule_params, number))


def _own(values: Params, number: int) -> Params:
    """Return the entries of rule ``number`` by the names that it knows."""
    prefix = f"{number}."
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


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


def _scaled_step(
    update: Update,
    multiplier: float,
    grads: Params,
    params: Params,
    rule_params: Params,
    loss: SupportLoss,
    state: Params,
) -> tuple[Params, Params]:
    steps, new_state = update(grads, params, rule_params, loss, state)
    return {name: multiplier * step for name, step in steps.items()}, new_state
