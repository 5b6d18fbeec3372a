"""Compiled: the operations that had to be replaced, and several inputs; exact too."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from exactness import check_exact
from third_party import of_third_party
from zoo import WAYS, WORDS, task_of, two_inputs


class AllAtOnce(nn.Module):
    """Attention, hardsigmoid, a bag, two inputs and a parameter that is not used: compiling takes long."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.ones(2))
        self.words, self.bag = nn.Embedding(WORDS, 4), nn.EmbeddingBag(WORDS, 4, mode="max")
        self.attention = nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0, batch_first=True)
        self.numbers = nn.Linear(5, 4)
        self.classifier = nn.Linear(4, WAYS)

    def forward(self, ids: Tensor, numbers: Tensor) -> dict[str, Tensor]:
        gate = nn.functional.hardsigmoid(2 * self.numbers(numbers))
        return {"logits": self.classifier(self.attention(self.words(ids)).mean(1) * gate + self.bag(ids))}


def test_the_compiled_meta_gradient_is_that_of_plain_autograd() -> None:
    torch.manual_seed(0)
    check_exact(AllAtOnce().double(), task_of(two_inputs), subset="cls", compile=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["timm-vit", "hf-bert"])
def test_that_of_third_parties_too(name: str) -> None:
    check_exact(*of_third_party(name), subset="cls+emb", rate=0.01, compile=True)
