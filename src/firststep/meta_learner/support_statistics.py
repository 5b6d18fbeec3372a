"""Normalise by the statistics of a support set, so that the output for a sample depends on no other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from firststep.backbones import BatchStatisticsNorm
from firststep.errors import FirststepError
from firststep.network import Params, as_arguments, set_rows
from firststep.task import Inputs

BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d | nn.SyncBatchNorm
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_INSTANCE_NORMS = (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)


def adapted_network(network: nn.Module, classifier: str | None, params: Params, support: Inputs) -> nn.Module:
    """Set adapted parameters and the batch statistics of the support set in a network, in place.

    Layers that normalise by the batch (batch norm in training mode, and that of our backbones always) get
    the statistics of the support set, measured with these parameters. The network is left in ``eval()``
    mode; :func:`ignore_mode` keeps its normalisation in ``train()`` mode too.

    Args:
        network: a copy of the learner's network, in the mode in which it adapted.
        classifier: path of its classifier; None if it has none.
        params: its adapted parameters, with one classifier row per class.
        support: inputs of the support set.
    """
    weight = params.get(f"{classifier}.weight" if classifier else "weight")
    if classifier is not None and weight is not None:
        give_rows(network, classifier, len(weight))
    with torch.no_grad():
        for name, value in network.named_parameters():
            if name in params:
                value.copy_(params[name])
    statistics = _measure(network, support)
    make_independent(network)
    for path, (mean, variance) in statistics.items():
        norm = network.get_submodule(path)
        norm.running_mean, norm.running_var = mean, variance
    return network


def give_rows(network: nn.Module, classifier: str, classes: int) -> None:
    """Give the classifier at this path, in place, one row per class."""
    linear = network.get_submodule(classifier)
    assert isinstance(linear, nn.Linear)
    if linear.out_features != classes:
        set_rows(linear, classes)


def make_independent(network: nn.Module) -> None:
    """Replace batch statistics by fixed ones, initially 0 and 1, in each normalising layer; in place."""
    for path, norm in _norms(network).items():
        if isinstance(norm, _BATCH_NORMS):
            norm.track_running_stats = True
            weight = next(network.parameters()) if norm.weight is None else norm.weight
            norm.running_mean = weight.detach().new_zeros(norm.num_features)
            norm.running_var = weight.detach().new_ones(norm.num_features)
            norm.num_batches_tracked = torch.tensor(0, device=weight.device)
        else:
            fixed = nn.BatchNorm2d(len(norm.weight), eps=norm.eps).to(norm.weight)
            fixed.weight, fixed.bias = norm.weight, norm.bias
            replace_module(network, path, fixed)
    for part in network.modules():
        if isinstance(part, _INSTANCE_NORMS) and part.training:
            part.track_running_stats = False  # per-sample statistics, as in training mode
    network.eval()


def ignore_mode(network: nn.Module) -> nn.Module:
    """Make normalisation in ``train()`` mode the same as in ``eval()`` mode; in place."""
    for part in network.modules():
        if isinstance(part, (*_BATCH_NORMS, *_INSTANCE_NORMS)):
            part.register_forward_pre_hook(_to_eval_mode)
    return network


def replace_module(network: nn.Module, path: str, new: nn.Module) -> None:
    """Replace the module at a path."""
    parent, _, name = path.rpartition(".")
    setattr(network.get_submodule(parent), name, new)


def _to_eval_mode(norm: nn.Module, inputs: tuple[Any, ...]) -> None:
    if norm.training:
        norm.eval()


def _norms(network: nn.Module) -> dict[str, BatchStatisticsNorm | BatchNorm]:
    """Return the layers that normalise by the batch."""
    return {
        path: norm
        for path, norm in network.named_modules()
        if isinstance(norm, BatchStatisticsNorm)
        or (isinstance(norm, _BATCH_NORMS) and (norm.training or norm.running_mean is None))
    }


@torch.no_grad()
def _measure(network: nn.Module, inputs: Inputs) -> dict[str, tuple[Tensor, Tensor]]:
    """Measure mean and variance per channel before these layers; the others run in ``eval()`` mode."""
    norms = _norms(network)
    found: dict[str, tuple[Tensor, Tensor]] = {}
    if not norms:
        return found

    def hook(path: str) -> Any:
        def measure(norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            if path in found:
                raise FirststepError(
                    f"{path} normalises in two places of the network, so it has no one pair of statistics: "
                    "give each place a layer of its own, or put the network in eval() mode"
                )
            values = inputs[0].transpose(0, 1).flatten(1)
            found[path] = values.mean(1), values.var(1, correction=0)

        return measure

    handles = [norm.register_forward_pre_hook(hook(path)) for path, norm in norms.items()]
    by_sample = [part for part in network.modules() if isinstance(part, _INSTANCE_NORMS) and part.training]
    network.eval()
    for part in (*norms.values(), *by_sample):
        part.train()
    arguments, keywords = as_arguments(inputs)
    try:
        network(*arguments, **keywords)
    finally:
        for handle in handles:
            handle.remove()
    return found
