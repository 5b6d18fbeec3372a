"""Networks for few-shot classification: ordinary modules with ``features`` and a linear ``classifier``."""

import pkgutil
from importlib import import_module

# isort: off
# The order of these imports is the order of BACKBONES, hence of help texts and tables.
from firststep.backbones.conv import Conv
from firststep.backbones.resnet import ResNet
from firststep.backbones.efficientnet import (
    EfficientNetLite,
    EfficientNetLiteBody,
    body_features,
    frozen_body,
)
from firststep.backbones.mlp import Mlp
# isort: on

from firststep.backbones.external import (
    HUGGING_FACE,
    TIMM,
    build_external,
    check_spec,
    freeze,
    native_image_size,
)
from firststep.backbones.norm import BatchStatisticsNorm, first_derivatives_only
from firststep.backbones.registry import BACKBONES, Backbone, build_backbone, register_backbone
from firststep.backbones.sentences import FEATURES as SENTENCE_FEATURES
from firststep.backbones.sentences import MOST_TOKENS, SentenceEncoder, Tokenizer
from firststep.backbones.user_network import code_of_the_user, make_network
from firststep.backbones.warp import WarpedConv, warp

for _file in pkgutil.iter_modules(__path__):  # a new file needs no other edit
    import_module(f"{__name__}.{_file.name}")

__all__ = [
    "BACKBONES",
    "HUGGING_FACE",
    "MOST_TOKENS",
    "SENTENCE_FEATURES",
    "TIMM",
    "Backbone",
    "BatchStatisticsNorm",
    "Conv",
    "EfficientNetLite",
    "EfficientNetLiteBody",
    "Mlp",
    "ResNet",
    "SentenceEncoder",
    "Tokenizer",
    "WarpedConv",
    "body_features",
    "build_backbone",
    "build_external",
    "check_spec",
    "code_of_the_user",
    "first_derivatives_only",
    "freeze",
    "frozen_body",
    "make_network",
    "native_image_size",
    "register_backbone",
    "warp",
]
