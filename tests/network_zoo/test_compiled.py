"""Compiled networks are exact too: all are traced, split and rewritten as graphs; few are compiled."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule
from torch.nn import functional as F

from exactness import check_exact
from firststep.metagradient.compiler import compiled, rows
from third_party import of_third_party
from zoo import WAYS, WORDS, images, in_zoo, task_of, two_inputs


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> list[GraphModule]:
    """Run graphs operation by operation in seconds; compiling them takes minutes."""
    graphs: list[GraphModule] = []

    def keep(graph: GraphModule, leaves: list[Tensor]) -> GraphModule:
        graphs.append(graph)
        return graph

    for module in (compiled, rows):
        monkeypatch.setattr(module, "compile_graph", keep)
    return graphs


@pytest.mark.parametrize(
    "name", ["bag-max", "tied-classifier", "squeeze-excite", "two-inputs", "transformer-masked"]
)
def test_graphs_give_the_meta_gradient_of_plain_autograd(name: str, interpreted: list[GraphModule]) -> None:
    check_exact(*in_zoo(name), subset="cls", compile=True)
    assert interpreted


@pytest.mark.slow
@pytest.mark.parametrize("name", ["timm-vit", "hf-bert"])  # our own ResNets are compiled elsewhere
def test_graphs_of_third_parties_too(name: str, interpreted: list[GraphModule]) -> None:
    check_exact(*of_third_party(name), subset="cls+emb", rate=0.01, compile=True)
    assert interpreted


def test_no_operation_of_a_graph_writes_into_another_s_result(interpreted: list[GraphModule]) -> None:
    """Torch's average pooling to one pixel does, channels last."""
    torch.manual_seed(0)
    pooled = (nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), *pooled, nn.Linear(4, WAYS)).double()
    check_exact(network, task_of(images(6)), subset="cls", compile=True)
    targets = [node.target for graph in interpreted for node in graph.graph.nodes]
    assert not [one for one in targets if getattr(one, "_schema", None) and one._schema.is_mutable]


class AllAtOnce(nn.Module):
    """Attention, hardsigmoid, a bag and two inputs; convolutions are compiled by the compiler's own tests."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.bag = nn.Embedding(WORDS, 4), nn.EmbeddingBag(WORDS, 4, mode="max")
        self.numbers = nn.Linear(5, 4)
        self.classifier = nn.Linear(4, WAYS)

    def forward(self, ids: Tensor, numbers: Tensor) -> dict[str, Tensor]:
        words = self.words(ids).unsqueeze(1)
        mixed = F.scaled_dot_product_attention(words, words, words).squeeze(1).mean(1)
        return {"logits": self.classifier(mixed * F.hardsigmoid(2 * self.numbers(numbers)) + self.bag(ids))}


@pytest.mark.slow
def test_the_compiled_meta_gradient_is_that_of_plain_autograd() -> None:
    torch.manual_seed(0)
    check_exact(AllAtOnce().double(), task_of(two_inputs), subset="cls", compile=True)
