"""Warp layers between the blocks of a Conv backbone."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from firststep import build_backbone
from firststep.backbones import warp
from firststep.functional import FunctionalModule
from networks import generator


@pytest.mark.parametrize(("name", "blocks"), [("conv4", 4), ("conv6", 6)])
def test_a_warp_layer_after_every_block_but_the_last(name: str, blocks: int) -> None:
    plain = build_backbone(name, filters=4, image_size=32, ways=3, generator=generator(1)).double()
    warped = warp(plain, generator(2))
    assert len(warped.warps) == blocks - 1
    images = torch.randn(6, 3, 32, 32, generator=generator(3), dtype=torch.float64)
    expected = images
    for i in range(blocks):
        expected = plain.blocks[i](expected)  # type: ignore[index, operator]
        if i < blocks - 1:
            layer = warped.warps[i]
            expected = F.conv2d(expected, layer.conv.weight, layer.conv.bias, padding=1)  # type: ignore
            expected = F.batch_norm(expected, None, None, training=True)
    torch.testing.assert_close(warped.features(images), expected.flatten(1))
    torch.testing.assert_close(warped(images), warped.classifier(expected.flatten(1)))


def test_names_of_the_plain_network_and_its_subsets_stay() -> None:
    plain = build_backbone("conv4", filters=4, image_size=16)
    names = {name for name, _ in plain.named_parameters()}
    before = FunctionalModule(plain)
    after = FunctionalModule(warp(plain))
    assert names < after.params().keys()
    assert all(name.startswith("warps.") for name in after.params().keys() - names)
    for subset in ("cls", "emb", "ebn"):
        assert after.subset(subset) == before.subset(subset)
    assert set(after.params()) == set(after.subset("all"))


def test_initial_values_come_from_the_generator() -> None:
    before = torch.get_rng_state()
    first, second, other = (
        warp(build_backbone("conv4", filters=4), generator(seed)).state_dict() for seed in (1, 1, 2)
    )
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert not torch.equal(first["warps.0.conv.weight"], other["warps.0.conv.weight"])


def test_other_networks_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"defined for the Conv backbones, conv4 and conv6, .* not for ResNet"
    ):
        warp(build_backbone("resnet10"))
