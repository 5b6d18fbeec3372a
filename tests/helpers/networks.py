"""Small networks and tasks in float64 for tests against dense references."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from firststep import Method, Task, build_backbone
from firststep.backbones import BatchStatisticsNorm, Conv
from firststep.backbones.initialise import initialise
from firststep.backbones.resnet import SimpleBlock
from firststep.functional import FunctionalModule


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small_conv(dtype: torch.dtype = torch.float64) -> nn.Module:
    return build_backbone("conv4", ways=3, filters=4, channels=1, image_size=16, generator=generator()).to(
        dtype
    )


def shallow_conv(dtype: torch.dtype = torch.float64) -> nn.Module:
    """Return two blocks for the images of :func:`shallow_task`: references and compilers take half the time.

    With maml of rate 0.2 and tasks of 3 classes, several tests compile the same graphs, which the compiler
    then finds in its cache.
    """
    return Conv(2, ways=3, filters=4, channels=1, image_size=8, generator=generator()).to(dtype)


class SmallResNet(nn.Module):
    """Two of our residual blocks, one with a shortcut convolution, narrow enough for dense Jacobians."""

    embedding = "blocks.1.conv2"
    embedding_norm = "blocks.1.norm2"

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(SimpleBlock(1, 4, 1), SimpleBlock(4, 6, 2))
        self.classifier = nn.Linear(6, 3)
        initialise(self, generator(1))

    def forward(self, images: Tensor) -> Tensor:
        return self.classifier(self.blocks(images).mean((2, 3)))


def small_resnet(dtype: torch.dtype = torch.float64) -> nn.Module:
    return SmallResNet().to(dtype)


class OwnNetwork(nn.Module):
    """A user's network: other names, torch's own batch norm with running statistics, layer norm, a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centre", torch.full((1,), 0.1))
        self.stem = nn.Conv2d(1, 4, 3)
        self.stem_norm = nn.BatchNorm2d(4)
        self.head = nn.ModuleDict({"norm": nn.LayerNorm(4), "out": nn.Linear(4, 3)})
        initialise(self, generator(2))

    def forward(self, images: Tensor) -> Tensor:
        maps = torch.tanh(self.stem_norm(self.stem(images - self.centre)))
        return self.head["out"](self.head["norm"](maps.mean((2, 3))))


def perturbed_rule_params(method: Method, model: FunctionalModule, spread: float = 0.1) -> dict[str, Tensor]:
    """Return a rule's own parameters, away from the special values that they start at."""
    rule_params = method.rule.init(model, model.params(), generator(11))
    source = generator(12)
    return {
        name: value + spread * torch.randn(value.shape, generator=source, dtype=value.dtype)
        for name, value in rule_params.items()
    }


def norm_count(module: nn.Module) -> int:
    return sum(isinstance(part, BatchStatisticsNorm) for part in module.modules())


def small_task(
    ways: int = 3,
    shots: int = 2,
    queries: int = 3,
    size: int = 16,
    channels: int = 1,
    seed: int = 5,
    dtype: torch.dtype = torch.float64,
) -> Task:
    source = generator(seed)

    def images(per_class: int) -> Tensor:
        return torch.randn(ways * per_class, channels, size, size, generator=source, dtype=torch.float64).to(
            dtype
        )

    def labels(per_class: int) -> Tensor:
        return torch.arange(ways).repeat_interleave(per_class)

    return Task(images(shots), labels(shots), images(queries), labels(queries))


def shallow_task(ways: int = 3, shots: int = 2, seed: int = 5) -> Task:
    return small_task(ways=ways, shots=shots, size=8, seed=seed)
