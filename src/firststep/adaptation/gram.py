"""The Gram matrix of a model on a support set, for any loss and any parameter subset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor

from firststep.conditioning import classifier_gram, gram_in_graph, jacobian_gram
from firststep.losses import Loss, Residuals, cross_entropy
from firststep.network import FunctionalModule, Output
from firststep.task import Inputs, Targets, check_differentiable


def support_gram(
    model: FunctionalModule,
    x: Inputs,
    y: Targets,
    *,
    params: Mapping[str, Tensor] | None = None,
    subset: str | Iterable[str] = "cls",
    loss: Loss = cross_entropy,
    residuals: Residuals | None = None,
    chunk_size: int | None = None,
    check_finite: bool = True,
) -> Tensor:
    """Return G = J Jᵀ of the residuals of a support set with respect to a parameter subset, float64 [n, n].

    G is a sum over parameters. The part of a linear last layer has a closed form; vector-Jacobian products
    give the rest. The result is differentiable in ``params``. For losses other than cross-entropy it is JᵀJ
    if that is smaller; the non-zero eigenvalues are the same.

    Args:
        model: the network.
        x: inputs of the support set.
        y: its targets; for classes 0..ways-1.
        params: the network's parameters; default the module's.
        subset: as :meth:`FunctionalModule.subset` takes it.
        loss: the loss whose residuals are used.
        residuals: kind of residuals; default all of the loss's own kind.
        chunk_size: number of rows of J computed at once; default as many as fit in half a gigabyte.
        check_finite: whether to refuse NaN and infinities; reading the values makes a GPU wait.

    Examples:
        >>> both = functional.support_gram(model, support_x, support_y, subset="cls+emb")
        >>> cls = functional.support_gram(model, support_x, support_y, subset="cls")
        >>> emb = functional.support_gram(model, support_x, support_y, subset="emb")
        >>> torch.allclose(both, cls + emb)
        True
    """
    params = model.params() if params is None else params
    y = loss.as_target(y, "labels" if loss.kind == "classes" else "y")
    model.check_params(params)
    model.observe(params, x)
    params = model.initial_params(params, *loss.labels(y), support=x)
    with model.one_task():
        return gram_of(
            model,
            x,
            y,
            params,
            subset,
            loss=loss,
            residuals=residuals,
            chunk_size=chunk_size,
            check_finite=check_finite,
        )


def gram_of(
    model: FunctionalModule,
    x: Inputs,
    y: Targets,
    params: Mapping[str, Tensor],
    subset: str | Iterable[str],
    *,
    loss: Loss = cross_entropy,
    residuals: Residuals | None = None,
    output: Output | None = None,
    chunk_size: int | None = None,
    check_finite: bool = False,
    in_graph: bool = False,
) -> Tensor:
    """Return the result of :func:`support_gram` without its checks.

    Args:
        x: inputs of the support set.
        x: the support set.
        y: its targets.
        params: the network's parameters.
        subset: as :meth:`FunctionalModule.subset` takes it.
        loss: the loss.
        residuals: kind of residuals; default all of the loss's own kind.
        output: ``model(params, x)`` if it is already known.
        chunk_size: number of rows of J computed at once.
        check_finite: whether to refuse NaN and infinities.
        in_graph: extend the graph from ``params`` to ``output``; its memory is not bounded.
    """
    chosen = residuals or Residuals()
    names = model.subset(subset)
    # Only the whole weight has a closed form, with or without the bias.
    weight, bias = model.closed_form()
    with_bias = bias in names
    parts: list[Tensor] = []
    rest = list(names)
    small = False
    if weight in names or loss is not cross_entropy:
        output = model(params, x) if output is None else output
    if loss is not cross_entropy:
        size = sum(params[name].numel() for name in names)
        small = chosen.count(loss, output.logits, y) > size if output is not None else False
    if weight in names and output is not None and output.features is not None:
        others = [name for name in names if name not in (weight, bias)]
        if loss is cross_entropy and chosen == Residuals():
            features, logits = output.features, output.logits
            parts.append(classifier_gram(features, logits, y, with_bias, check_finite=check_finite))  # type: ignore[arg-type]
            rest = others
        elif not others or not small:  # JᵀJ of a union is not a sum of two parts
            parts.append(chosen.gram(loss, output.features, output.logits, y, with_bias, small=not others))
            rest = others
    if rest and in_graph:
        output = model(params, x) if output is None else output
        vector = chosen.vector(loss, output.logits, y, check_finite=check_finite)
        parts.append(gram_in_graph(vector, [params[name] for name in rest], small=small))
    elif rest:
        check_differentiable(x)
        network = model.pinned()  # it runs again in the backward pass
        parts.append(
            jacobian_gram(
                lambda p: chosen.vector(loss, network(p, x).logits, y, check_finite=check_finite),
                params,
                wrt=rest,
                chunk_size=chunk_size,
                check_finite=check_finite,
                small=small,
            )
        )
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]
