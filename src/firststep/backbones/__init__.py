"""Networks for few-shot classification: ordinary modules with ``features`` and a linear ``classifier``."""

from firststep.backbones.conv import Conv
from firststep.backbones.efficientnet import EfficientNetLite0, EfficientNetLite0Body, body_features
from firststep.backbones.norm import BatchStatisticsNorm
from firststep.backbones.registry import BACKBONES, Backbone, build_backbone
from firststep.backbones.resnet import ResNet
from firststep.backbones.warp import WarpedConv, warp

__all__ = [
    "BACKBONES",
    "Backbone",
    "BatchStatisticsNorm",
    "Conv",
    "EfficientNetLite0",
    "EfficientNetLite0Body",
    "ResNet",
    "WarpedConv",
    "body_features",
    "build_backbone",
    "warp",
]
