"""``emb`` and ``ebn``: the last layer before the classifier in order of execution, and its normalisation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from firststep import MetaLearner, build_backbone
from firststep.functional import FunctionalModule
from third_party import THIRD_PARTY, of_third_party
from zoo import in_zoo


def subset_or_none(model: FunctionalModule, subset: str) -> tuple[str, ...] | None:
    try:
        return model.subset(subset)
    except ValueError:
        return None


def both(path: str | None) -> tuple[str, ...] | None:
    return path if path is None else (f"{path}.weight", f"{path}.bias")


@pytest.mark.parametrize(
    ("name", "embedding", "norm"),
    [
        ("timm-convnext", "stages.3.blocks.0.mlp.fc2", "head.norm"),
        ("timm-vit", "blocks.1.mlp.fc2", "norm"),
        ("timm-mobilenetv3", "conv_head", None),
        ("hf-vit", "vit.layers.1.mlp.fc2", "vit.layernorm"),
        ("hf-dinov2", "dinov2.encoder.layer.1.mlp.fc2", "dinov2.layernorm"),
        ("hf-bert", "bert.pooler.dense", None),
        ("perceptron", "2", None),
        ("words", "hidden", None),  # whose layer `embedding` is not a path
        ("transformer", "encoder.layers.1.linear2", "encoder.layers.1.norm2"),
    ],
)
def test_the_layers_of_known_networks(name: str, embedding: str, norm: str | None) -> None:
    network, task = of_third_party(name) if name in THIRD_PARTY else in_zoo(name)
    model = FunctionalModule(network)
    model.observe(model.params(), task.support_x)
    assert model.subset("emb") == both(embedding)
    assert subset_or_none(model, "ebn") == both(norm)


class OtherOrder(nn.Module):
    """Registered as classifier, second, first; executed the other way round."""

    def __init__(self) -> None:
        super().__init__()
        self.classifier = nn.Linear(4, 3)
        self.norm_of_second = nn.LayerNorm([4, 1])  # a scale of two dimensions is no layer of weights
        self.second = nn.Linear(4, 4)
        self.norm_of_first = nn.LayerNorm(4)
        self.first = nn.Linear(4, 4)

    def forward(self, points: Tensor) -> Tensor:
        hidden = self.norm_of_first(self.first(points)).relu()
        return self.classifier(self.norm_of_second(self.second(hidden).unsqueeze(-1)).squeeze(-1))


def test_order_of_execution_counts_once_it_is_known() -> None:
    meta = MetaLearner(OtherOrder())
    meta.condition_number(torch.randn(6, 4), torch.arange(3).repeat(2), subset="emb")
    assert meta.functional.subset("emb") == ("second.weight", "second.bias")
    assert meta.functional.subset("ebn") == ("norm_of_second.weight", "norm_of_second.bias")


def test_a_layer_with_a_computed_weight_counts_as_a_whole() -> None:
    network = nn.Sequential(weight_norm(nn.Linear(4, 4)), nn.ReLU(), nn.Linear(4, 3))
    model = FunctionalModule(network)
    model.observe(model.params(), torch.randn(6, 4))
    assert model.subset("emb") == tuple(name for name in model.params() if name.startswith("0."))
    assert len(model.subset("emb")) == 3


@pytest.mark.parametrize("backbone", ["conv4", "conv6", "resnet10", "resnet18"])
def test_our_own_networks_name_theirs(backbone: str) -> None:
    network = build_backbone(backbone, ways=3, image_size=32)
    model = FunctionalModule(network)
    before = model.subset("emb"), model.subset("ebn")
    model.observe(model.params(), torch.randn(2, 3, 32, 32))
    assert (model.subset("emb"), model.subset("ebn")) == before
    for path, names in zip((network.embedding, network.embedding_norm), before, strict=True):
        assert all(name.startswith(f"{path}.") for name in names)
