"""Adapted networks for deployment: the output for an image depends on no other image.

Batch norm uses the statistics of the support set. The result is an ordinary network in ``eval()`` mode that
takes any batch size.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from firststep.backbones import frozen_body
from firststep.errors import FirststepError
from firststep.evaluation._few_shot_head import HeadForm
from firststep.meta_learner import MetaLearner, adapted_network, give_rows, make_independent, replace_module
from firststep.network import Params

_ROUNDING = 1e-3
"""Largest relative difference of logits that rounding can cause when the batch size changes."""


def frozen_network(meta: MetaLearner, params: Params, support: Tensor) -> nn.Module:
    """Copy the learner's network, with these parameters and the batch statistics of a support set."""
    network = adapted_network(_copied(meta.network), meta.functional.classifier, params, support)
    return network.requires_grad_(False)


def blank_network(meta: MetaLearner, classes: int, head: HeadForm | None) -> nn.Module:
    """Return a network of the same architecture, to load stored weights into; None is its linear head."""
    network = _copied(meta.network)
    give_rows(network, meta.functional.classifier, classes)
    if head is not None:
        old = network.get_submodule(meta.functional.classifier)
        assert isinstance(old, nn.Linear)
        replace_module(network, meta.functional.classifier, head.build(old.in_features, classes))
    make_independent(network)
    return network.requires_grad_(False)


def _copied(network: nn.Module) -> nn.Module:
    """Copy a network but share its frozen body, which never changes and is most of the network."""
    body = frozen_body(network)
    return copy.deepcopy(network, {} if body is None else {id(body): body})


def logits_of(network: nn.Module, images: Tensor) -> Tensor:
    """Return the logits of a network that returns a tensor, or a dict or object with ``logits``."""
    result: Any = network(images)
    if isinstance(result, Tensor):
        return result
    found = result["logits"] if isinstance(result, dict) else result.logits
    assert isinstance(found, Tensor)
    return found


@torch.no_grad()
def features_of(network: nn.Module, classifier: str, images: Tensor) -> Tensor:
    """Return the input of the classifier at a path, [n, d]."""
    found: list[Tensor] = []
    handle = network.get_submodule(classifier).register_forward_pre_hook(
        lambda module, inputs: found.append(inputs[0])
    )
    try:
        network(images)
    finally:
        handle.remove()
    return found[0]


@torch.no_grad()
def check_independent(network: nn.Module, images: Tensor) -> None:
    """Refuse a network that mixes the images of a batch in other ways than batch norm."""
    together, alone = logits_of(network, images)[:1], logits_of(network, images[:1])
    if not bool(together.isfinite().all()):
        raise FirststepError("outputs are not finite: check the weights, or use shorter inner steps")
    if not torch.allclose(together, alone, rtol=_ROUNDING, atol=_ROUNDING * float(together.abs().max())):
        raise FirststepError(
            f"{type(network).__name__} gives different outputs for an image alone and in a batch, although "
            "its batch norms are fixed; if this is intended, adapt with `transductive`"
        )
