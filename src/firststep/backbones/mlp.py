"""A perceptron with two hidden layers: vectors in, numbers or logits out."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from firststep.backbones.initialise import initialise, linear
from firststep.backbones.registry import DEFAULT_FILTERS, register_backbone

SMALLEST_IMAGE = 2
DEFAULT_UNITS = 40  # as in Finn et al. (2017) for sinusoids


class Mlp(nn.Module):
    """Two hidden layers with ReLU and a linear ``classifier``; inputs are flattened.

    Weights and hidden biases are uniform within ±1 / sqrt(inputs of the layer); the last bias is 0.

    Examples:
        >>> from firststep.backbones import Mlp
        >>> Mlp(1, 1)(torch.zeros(10, 1)).shape
        torch.Size([10, 1])
    """

    def __init__(
        self, inputs: int, outputs: int, units: int | None = None, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        width = DEFAULT_UNITS if units is None else units
        first, second = linear(inputs, width), linear(width, width)
        self.body = nn.Sequential(nn.Flatten(), first, nn.ReLU(), second, nn.ReLU())
        self.classifier = linear(width, outputs)
        generator = generator or torch.Generator().manual_seed(0)
        initialise(self, generator)
        for layer in (first, second):
            bound = 1 / math.sqrt(layer.in_features)
            nn.init.uniform_(layer.bias, -bound, bound, generator=generator)

    def features(self, x: Tensor) -> Tensor:
        """Return the input of the last layer, [n, units]."""
        hidden: Tensor = self.body(x)
        return hidden

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(x))
        return logits


@register_backbone(
    "mlp",
    title="MLP",
    features=lambda image_size, filters: filters or DEFAULT_FILTERS,
    image_size=28,
    smallest_image=SMALLEST_IMAGE,
    has_filters=True,
)
def image_mlp(
    *,
    ways: int,
    image_size: int,
    channels: int,
    filters: int,
    generator: torch.Generator | None = None,
) -> Mlp:
    """Return the perceptron for images, with ``filters`` units per hidden layer."""
    if image_size < SMALLEST_IMAGE:
        raise ValueError(f"image_size must be at least {SMALLEST_IMAGE}, not {image_size}")
    return Mlp(channels * image_size**2, ways, filters, generator)
