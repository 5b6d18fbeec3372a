"""An adapted network whose answer to an image depends on no other image: the form in which it is deployed.

Layers that normalise by the batch they see (batch norm in training mode, and that of our backbones always)
get the statistics of the support set instead, measured with the adapted parameters. From then on it is an
ordinary network in ``eval()`` mode, of which one image or a thousand may be asked.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep.backbones import BatchStatisticsNorm, frozen_body
from firststep.errors import FirststepError
from firststep.meta_learner import MetaLearner
from firststep.network import Params, set_rows

_ROUNDING = 1e-3
"""Relative difference of logits that the order of summation in batches of other sizes can explain."""


BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class UnitLinear(nn.Linear):
    """A linear layer on features that are scaled to length one, as the probes take them."""

    def forward(self, features: Tensor) -> Tensor:
        return F.linear(F.normalize(features, dim=1), self.weight, self.bias)


def frozen_network(meta: MetaLearner, params: Params, support: Tensor) -> nn.Module:
    """A copy of the learner's network with these parameters and the batch statistics of a support set."""
    network = _copied(meta.network)
    _give_rows(network, meta, len(params[meta.functional.subset("cls")[0]]))
    with torch.no_grad():
        for name, value in network.named_parameters():
            if name in params:
                value.copy_(params[name])
    statistics = _measure(network, support)
    _make_independent(network)
    for path, (mean, variance) in statistics.items():
        norm = network.get_submodule(path)
        norm.running_mean, norm.running_var = mean, variance
    return network


def blank_network(meta: MetaLearner, classes: int, *, unit_features: bool) -> nn.Module:
    """A network of the same form, for the stored weights of one."""
    network = _copied(meta.network)
    _give_rows(network, meta, classes)
    if unit_features:
        old = network.get_submodule(meta.functional.classifier)
        assert isinstance(old, nn.Linear)
        replace_module(network, meta.functional.classifier, UnitLinear(old.in_features, classes))
    _make_independent(network)
    return network


def _copied(network: nn.Module) -> nn.Module:
    """A frozen body is shared: nothing changes it, and it is most of the network."""
    body = frozen_body(network)
    return copy.deepcopy(network, {} if body is None else {id(body): body})


def logits_of(network: nn.Module, images: Tensor) -> Tensor:
    """Of what a network returns: a tensor, or a dict or object that has them."""
    result: Any = network(images)
    if isinstance(result, Tensor):
        return result
    found = result["logits"] if isinstance(result, dict) else result.logits
    assert isinstance(found, Tensor)
    return found


@torch.no_grad()
def features_of(network: nn.Module, classifier: str, images: Tensor) -> Tensor:
    """What the classifier at that path gets, [n, d]."""
    found: list[Tensor] = []
    handle = network.get_submodule(classifier).register_forward_pre_hook(
        lambda module, inputs: found.append(inputs[0])
    )
    network(images)
    handle.remove()
    return found[0]


def replace_module(network: nn.Module, path: str, new: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(network.get_submodule(parent), name, new)


@torch.no_grad()
def check_independent(network: nn.Module, images: Tensor) -> None:
    """Refuse a network in which something else than batch norm mixes the images of a batch."""
    together, alone = logits_of(network, images)[:1], logits_of(network, images[:1])
    if not bool(together.isfinite().all()):
        raise FirststepError("the outputs are not finite: the weights are damaged, or the steps too long")
    if not torch.allclose(together, alone, rtol=_ROUNDING, atol=_ROUNDING * float(together.abs().max())):
        raise FirststepError(
            f"{type(network).__name__} answers one image otherwise than the same image in a batch, although "
            "its batch norms are fixed: adapt with `transductive` if that is meant"
        )


def _give_rows(network: nn.Module, meta: MetaLearner, classes: int) -> None:
    linear = network.get_submodule(meta.functional.classifier)
    assert isinstance(linear, nn.Linear)
    if linear.out_features != classes:
        set_rows(linear, classes)


def _norms(network: nn.Module) -> dict[str, BatchStatisticsNorm | BatchNorm]:
    """Those that normalise by the batch."""
    return {
        path: norm
        for path, norm in network.named_modules()
        if isinstance(norm, BatchStatisticsNorm)
        or (isinstance(norm, BATCH_NORMS) and (norm.training or norm.running_mean is None))
    }


@torch.no_grad()
def _measure(network: nn.Module, images: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """Mean and variance of each channel before each such layer."""
    norms = _norms(network)
    found: dict[str, tuple[Tensor, Tensor]] = {}
    if not norms:
        return found

    def hook(path: str) -> Any:
        def measure(norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            if path in found:
                raise FirststepError(
                    f"{path} normalises in two places of the network, so it has no one pair of statistics"
                )
            values = inputs[0].transpose(0, 1).flatten(1)
            found[path] = values.mean(1), values.var(1, correction=0)

        return measure

    handles = [norm.register_forward_pre_hook(hook(path)) for path, norm in norms.items()]
    logits_of(network, images)
    for handle in handles:
        handle.remove()
    return found


def _make_independent(network: nn.Module) -> None:
    """Give each such layer statistics of its own, 0 and 1, to be set; in place."""
    for path, norm in _norms(network).items():
        kind = type(norm) if isinstance(norm, BATCH_NORMS) else nn.BatchNorm2d
        channels = norm.num_features if isinstance(norm, BATCH_NORMS) else len(norm.weight)
        fixed = kind(channels, eps=norm.eps, affine=norm.weight is not None)
        if norm.weight is not None:
            fixed.weight, fixed.bias = norm.weight, norm.bias
            fixed.to(norm.weight)
        replace_module(network, path, fixed)
    network.eval()
    network.requires_grad_(False)
