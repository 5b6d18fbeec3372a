"""Tiny networks of many kinds, with random weights in float64, each with a task that fits it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep import Task
from networks import generator

WAYS, SHOTS, QUERIES, WORDS = 3, 2, 3, 13
Batch = Callable[[int, torch.Generator], Any]


def vectors(count: int, source: torch.Generator) -> Tensor:
    return torch.randn(count, 5, generator=source, dtype=torch.float64)


def signals(count: int, source: torch.Generator) -> Tensor:
    return torch.randn(count, 2, 12, generator=source, dtype=torch.float64)


def sequences(count: int, source: torch.Generator) -> Tensor:
    return torch.randn(count, 6, 4, generator=source, dtype=torch.float64)


def words(count: int, source: torch.Generator) -> Tensor:
    return torch.randint(1, WORDS, (count, 7), generator=source)


def masked_words(count: int, source: torch.Generator) -> dict[str, Tensor]:
    """Return words as a tokenizer gives them: padded at the end."""
    lengths = torch.randint(3, 8, (count, 1), generator=source)
    mask = torch.arange(7) < lengths
    return {"input_ids": words(count, source) * mask, "attention_mask": mask.long()}


def two_inputs(count: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
    return words(count, source), vectors(count, source)


def images(size: int, channels: int = 1) -> Batch:
    def batch(count: int, source: torch.Generator) -> Tensor:
        return torch.randn(count, channels, size, size, generator=source, dtype=torch.float64)

    return batch


def task_of(batch: Batch, seed: int = 3) -> Task:
    source = generator(seed)
    support, query = batch(WAYS * SHOTS, source), batch(WAYS * QUERIES, source)
    return Task(support, torch.arange(WAYS).repeat(SHOTS), query, torch.arange(WAYS).repeat(QUERIES))


class Recurrent(nn.Module):
    def __init__(self, layer: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.layer = layer(4, 6, batch_first=True)
        self.classifier = nn.Linear(6, WAYS)

    def forward(self, values: Tensor) -> Tensor:
        return self.classifier(self.layer(values)[0][:, -1])


class MeanOfWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 6)
        self.hidden = nn.Linear(6, 6)
        self.classifier = nn.Linear(6, WAYS)

    def forward(self, ids: Tensor) -> Tensor:
        return self.classifier(torch.tanh(self.hidden(self.embedding(ids).mean(1))))


class BagOfWords(nn.Module):
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, 6, mode=mode, padding_idx=2)
        self.classifier = nn.Linear(6, WAYS)

    def forward(self, ids: Tensor) -> Tensor:
        return self.classifier(torch.tanh(self.words(ids)))


class TiedLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 5), nn.Linear(5, 5)
        self.second.weight = self.first.weight
        self.classifier = nn.Linear(5, WAYS)

    def forward(self, points: Tensor) -> Tensor:
        return self.classifier(torch.tanh(self.second(torch.tanh(self.first(points)))))


class TiedClassifier(nn.Module):
    """The classifier's rows are those of the first words, as in language models."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 6)
        self.hidden = nn.Linear(6, 6)
        self.classifier = nn.Linear(6, WORDS)
        self.classifier.weight = self.words.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.classifier(torch.tanh(self.hidden(self.words(ids).mean(1))))


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True, norm_first=False)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.classifier = nn.Linear(4, WAYS)

    def forward(self, values: Tensor) -> Tensor:
        return self.classifier(self.encoder(values).mean(1))


class MaskedTransformer(nn.Module):
    """Padded words and a mean over all positions: padding counts, in eval mode too."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 4)
        layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.classifier = nn.Linear(4, WAYS)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        hidden = self.encoder(self.words(input_ids), src_key_padding_mask=attention_mask == 0)
        return {"logits": self.classifier(hidden.mean(1))}


class SqueezeExcite(nn.Module):
    """The parts of MobileNetV3: hardswish, and hardsigmoid as a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.swish = nn.Hardswish()
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 4, 1), nn.Hardsigmoid())
        self.classifier = nn.Linear(4, WAYS)

    def forward(self, maps: Tensor) -> Tensor:
        maps = self.swish(2 * self.norm(self.conv(maps)))
        return self.classifier((maps * self.gate(maps)).mean((2, 3)))


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.numbers = nn.Embedding(WORDS, 4), nn.Linear(5, 4)
        self.classifier = nn.Linear(4, WAYS)

    def forward(self, ids: Tensor, numbers: Tensor) -> Tensor:
        return self.classifier(torch.tanh(self.words(ids).mean(1) * self.numbers(numbers)))


class UnusedParameter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mask_token = nn.Parameter(torch.ones(1, 5))
        self.hidden = nn.Linear(5, 6)
        self.classifier = nn.Linear(6, WAYS)

    def forward(self, points: Tensor) -> Tensor:
        return self.classifier(F.gelu(self.hidden(points)))


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 6), nn.SiLU(), nn.Linear(6, WAYS))


def _cnn1d() -> nn.Module:
    pooled = (nn.AdaptiveAvgPool1d(1), nn.Flatten())
    return nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), *pooled, nn.Linear(4, WAYS))


ZOO: dict[str, tuple[Callable[[], nn.Module], Batch]] = {
    "perceptron": (_perceptron, vectors),
    "cnn-1d": (_cnn1d, signals),
    "lstm": (lambda: Recurrent(nn.LSTM), sequences),
    "gru": (lambda: Recurrent(nn.GRU), sequences),
    "words": (MeanOfWords, words),
    "bag-mean": (lambda: BagOfWords("mean"), words),
    "bag-sum": (lambda: BagOfWords("sum"), words),
    "bag-max": (lambda: BagOfWords("max"), words),
    "tied-layers": (TiedLayers, vectors),
    "tied-classifier": (TiedClassifier, words),
    "transformer": (Transformer, sequences),
    "transformer-eval": (lambda: Transformer().eval(), sequences),
    "transformer-masked": (lambda: MaskedTransformer().eval(), masked_words),
    "squeeze-excite": (SqueezeExcite, images(6)),
    "two-inputs": (TwoInputs, two_inputs),
    "unused-parameter": (UnusedParameter, vectors),
}


def in_zoo(name: str) -> tuple[nn.Module, Task]:
    build, batch = ZOO[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build().double(), task_of(batch)
