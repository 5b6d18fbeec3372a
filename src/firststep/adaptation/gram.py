"""The Gram matrix of a model on a support set, for any parameter subset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor

from firststep.conditioning import classifier_gram, cross_entropy_residuals, gram_in_graph, jacobian_gram
from firststep.network import FunctionalModule, Output
from firststep.task import Inputs, as_labels, check_differentiable


def support_gram(
    model: FunctionalModule,
    x: Inputs,
    y: Tensor,
    *,
    params: Mapping[str, Tensor] | None = None,
    subset: str | Iterable[str] = "cls",
    chunk_size: int | None = None,
    check_finite: bool = True,
) -> Tensor:
    """G = J Jᵀ of the residuals of a support set with respect to a parameter subset, float64 [n, n].

    The classifier's part is taken in closed form, anything else from vector-Jacobian products, and the two
    are added: G is a sum over parameters. Differentiable in ``params``.

    Args:
        model: the network.
        x: the support set.
        y: its labels, 0..ways-1.
        params: the network's parameters; default the module's.
        subset: as :meth:`FunctionalModule.subset` takes it.
        chunk_size: rows of J computed at once; default as many as fit in half a gigabyte.
        check_finite: refuse NaN and infinities; reading the values makes a GPU wait.

    Examples:
        >>> both = functional.support_gram(model, support_x, support_y, subset="cls+emb")
        >>> cls = functional.support_gram(model, support_x, support_y, subset="cls")
        >>> emb = functional.support_gram(model, support_x, support_y, subset="emb")
        >>> torch.allclose(both, cls + emb)
        True
    """
    params = model.params() if params is None else params
    y = as_labels(y)
    model.check_params(params)
    model.observe(params, x)
    params = model.initial_params(params, y)
    with model.one_task():
        return gram_of(model, x, y, params, subset, chunk_size=chunk_size, check_finite=check_finite)


def gram_of(
    model: FunctionalModule,
    x: Inputs,
    y: Tensor,
    params: Mapping[str, Tensor],
    subset: str | Iterable[str],
    *,
    output: Output | None = None,
    chunk_size: int | None = None,
    check_finite: bool = False,
    in_graph: bool = False,
) -> Tensor:
    """:func:`support_gram` without its checks.

    Args:
        model: the network.
        x: the support set.
        y: its labels.
        params: the network's parameters.
        subset: as :meth:`FunctionalModule.subset` takes it.
        output: ``model(params, x)`` if it is known already.
        chunk_size: rows of J computed at once.
        check_finite: refuse NaN and infinities.
        in_graph: build on the graph of ``output`` from ``params``, whose memory is not bounded.
    """
    names = model.subset(subset)
    # Only the whole weight has the closed form: with or without the bias.
    weight, bias = model.closed_form()
    parts: list[Tensor] = []
    rest = list(names)
    if weight in names:
        output = model(params, x) if output is None else output
        with_bias = bias in names
        parts.append(classifier_gram(output.features, output.logits, y, with_bias, check_finite=check_finite))
        rest = [name for name in names if name not in (weight, bias)]
    if rest and in_graph:
        output = model(params, x) if output is None else output
        vector = cross_entropy_residuals(output.logits, y, check_finite=check_finite)
        parts.append(gram_in_graph(vector, [params[name] for name in rest]))
    elif rest:
        check_differentiable(x)
        network = model.pinned()  # it runs again on the way back
        parts.append(
            jacobian_gram(
                lambda p: cross_entropy_residuals(network(p, x).logits, y, check_finite=check_finite),
                params,
                wrt=rest,
                chunk_size=chunk_size,
                check_finite=check_finite,
            )
        )
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]
