"""Exact numbers of parameters: the paper's, and what each method adds."""

from __future__ import annotations

import pytest

from firststep import METHODS, build_backbone, build_method
from firststep.functional import FunctionalModule
from firststep.methods import count_parameters

# (method, backbone, filters): parameters in all, 5-way, 84 px RGB.
TOTALS = {
    ("maml", "conv4", 32): 32_901,
    ("fomaml", "conv6", 128): 759_045,
    ("anil", "conv4", 64): 121_093,
    ("boil", "conv6", 64): 195_205,
    ("meta-sgd", "conv4", 32): 65_802,
    ("modgrad", "conv4", 64): 1_178_019,
    ("warp-maml", "conv4", 128): 906_885,
    ("meta-curvature", "conv4", 128): 10_818_928,
    ("gap", "conv4", 128): 463_365 + 411,
    ("gap", "conv4", 64): 121_093 + 219,
    ("gauss-newton", "conv4", 64): 121_093,
    ("momentum", "conv4", 64): 121_093,
    ("adam", "conv4", 64): 121_093,
    ("rmsprop", "conv4", 64): 121_093,
    # A perceptron 20-20-20 for ten tensors; a rate and a decay per tensor and step.
    ("alfa", "conv4", 64): 121_093 + 2 * (20 * 20 + 20) + 2 * 5 * 10,
    # Per step a loss 21-21-1 and an adapter 11-11-8 with two gates per tensor of the loss.
    ("metal", "conv4", 64): 121_093 + 5 * (21 * 21 + 21 + 21 + 1 + 11 * 11 + 11 + 8 * 11 + 8 + 8),
    # Five rates for each of four convolutions and the classifier; five scales and shifts of four norms.
    ("maml++", "conv4", 64): 121_093 + 5 * (4 + 1) + 5 * (4 * 2 * 64),
}


@pytest.mark.parametrize(("method", "backbone", "filters"), TOTALS)
def test_totals_are_exact(method: str, backbone: str, filters: int) -> None:
    network = build_backbone(backbone, filters=filters)
    plain = sum(parameter.numel() for parameter in network.parameters())
    counts = count_parameters(build_method(method), network)
    assert counts.total == TOTALS[method, backbone, filters]
    assert counts.backbone == plain
    assert counts.added == counts.total - plain


def test_every_method_has_a_count() -> None:
    assert {method for method, _, _ in TOTALS} == set(METHODS)


def test_modgrad_adds_the_published_number() -> None:
    model = FunctionalModule(build_backbone("conv4", filters=64))
    rule_params = build_method("modgrad").rule.init(model, model.params())
    assert sum(value.numel() for value in rule_params.values()) == 1_056_926
