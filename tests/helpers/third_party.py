"""Tiny networks of timm and transformers with random weights; tests skip where these are not installed."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from firststep import Task
from zoo import WAYS, WORDS, Batch, images, masked_words, task_of


def _import(name: str) -> Any:
    """Import a development dependency, or skip the test; warnings of its import are not ours."""
    _declare_operations_of_torchvision()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError as error:
            pytest.skip(f"{name} is not installed ({error})")


def _declare_operations_of_torchvision() -> None:
    """Declare the compiled operations of torchvision, whose wheel is built for CUDA.

    Beside torch for CPU these operations are missing, and registering shapes for them fails. timm imports
    torchvision, and so does transformers if it is installed. tests/backbones/test_torchvision.py tests what
    users see of this, in separate processes.
    """
    if _kept:
        return
    with contextlib.suppress(RuntimeError):  # it is the right build
        library = torch.library.Library("torchvision", "FRAGMENT")
        for operation in ("nms", "qnms"):
            library.define(f"{operation}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
        _kept.append(library)  # gone, it would take its declarations with it


def import_timm() -> Any:
    return _import("timm")


def import_lightning() -> Any:
    return _import("pytorch_lightning")


def import_easyfsl() -> Any:
    return _import("easyfsl.methods")


_kept: list[torch.library.Library] = []


def _resnet() -> nn.Module:
    resnet = import_timm().models.resnet
    return resnet.ResNet(
        resnet.BasicBlock, [1, 1, 1, 1], num_classes=WAYS, in_chans=1, channels=(4, 4, 6, 6), stem_width=4
    )


def _convnext() -> nn.Module:
    return import_timm().models.convnext.ConvNeXt(
        in_chans=1, num_classes=WAYS, depths=(1, 1, 1, 1), dims=(4, 4, 6, 6)
    )


def _vit() -> nn.Module:
    return import_timm().models.vision_transformer.VisionTransformer(
        img_size=8, patch_size=4, in_chans=1, num_classes=WAYS, embed_dim=8, depth=2, num_heads=2
    )


def _mobilenet() -> nn.Module:
    return import_timm().create_model("mobilenetv3_small_050", num_classes=WAYS, in_chans=1)


def _config(name: str, **options: Any) -> Any:
    small = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "num_labels": WAYS}
    return getattr(_import("transformers"), name)(**small | options)


def _hf_vit() -> nn.Module:
    config = _config("ViTConfig", intermediate_size=12, image_size=8, patch_size=4, num_channels=1)
    return _import("transformers").ViTForImageClassification(config).eval()


def _hf_dinov2() -> nn.Module:
    config = _config("Dinov2Config", image_size=8, patch_size=4, num_channels=1, mlp_ratio=2)
    return _import("transformers").Dinov2ForImageClassification(config).eval()


def _hf_bert() -> nn.Module:
    config = _config("BertConfig", intermediate_size=12, vocab_size=WORDS, max_position_embeddings=8)
    return _import("transformers").BertForSequenceClassification(config).eval()


THIRD_PARTY: dict[str, tuple[Callable[[], nn.Module], Batch]] = {
    "timm-resnet": (_resnet, images(16)),
    "timm-convnext": (_convnext, images(32)),
    "timm-vit": (_vit, images(8)),
    "timm-mobilenetv3": (_mobilenet, images(32)),
    "hf-vit": (_hf_vit, lambda count, source: {"pixel_values": images(8)(count, source)}),
    "hf-dinov2": (_hf_dinov2, images(8)),
    "hf-bert": (_hf_bert, masked_words),
}


def of_third_party(name: str) -> tuple[nn.Module, Task]:
    build, batch = THIRD_PARTY[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build().double(), task_of(batch)


def import_transformers() -> Any:
    return _import("transformers")
