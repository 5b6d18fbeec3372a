"""Your own arrays and your own network: few-shot topics of short texts.

A topic mixes two fields of life, and a text has words of them between others. The learner is trained on 20
topics and tested on 8 that mix the fields in other ways: it has to find out which words belong together.

Run: python examples/text.py
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn

import firststep as fs
from firststep.data import Dataset, Episodes, from_arrays
from firststep.evaluation import EvaluationSettings, evaluate, to_task

WAYS, SHOTS, QUERIES, TEXTS, LENGTH = 5, 5, 5, 12, 12
FIELDS = """
dog cat horse cow sheep wolf bear fox
bread cheese apple soup rice butter salad cake
rain snow wind cloud storm sun fog frost
train bus car ship bicycle plane tram lorry
doctor nurse hospital fever pill wound clinic patient
violin piano drum song flute choir opera guitar
goal team match player coach league stadium referee
bank loan market price tax profit share budget
"""
WORDS = FIELDS.split()
NUMBER = {word: number for number, word in enumerate(WORDS, 1)}  # 0 is padding


def topics(seed: int = 0) -> tuple[list[str], list[int]]:
    """Return texts and the index of their topics."""
    rng = np.random.default_rng(seed)
    fields = [line.split() for line in FIELDS.strip().splitlines()]
    mixed = list(combinations(range(len(fields)), 2))
    rng.shuffle(mixed)
    texts, labels = [], []
    for topic, chosen in enumerate(mixed):
        words = [word for field in chosen for word in fields[field]]
        for _ in range(TEXTS):
            count = rng.integers(8, LENGTH + 1)
            picked = [rng.choice(words if rng.random() < 0.75 else WORDS) for _ in range(count)]
            texts.append(" ".join(picked))
            labels.append(topic)
    return texts, labels


def dataset() -> Dataset:
    """Return the texts as word indices, int64 [336, 12], padded with 0."""
    texts, labels = topics()
    ids = np.zeros((len(texts), LENGTH), dtype=np.int64)
    for row, text in zip(ids, texts, strict=True):
        words = text.split()
        row[: len(words)] = [NUMBER[word] for word in words]
    return from_arrays(ids, labels, {"train": range(20), "test": range(20, 28)}, name="topics")


class TextNetwork(nn.Module):
    """The mean of the words' embeddings, a hidden layer, a linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(len(WORDS) + 1, 32, padding_idx=0)
        self.hidden = nn.Sequential(nn.Linear(32, 32), nn.ReLU())
        self.classifier = nn.Linear(32, WAYS)

    def forward(self, ids: Tensor) -> Tensor:
        count = (ids > 0).sum(1, keepdim=True)
        logits: Tensor = self.classifier(self.hidden(self.words(ids).sum(1) / count))
        return logits


def main(updates: int = 150) -> dict[str, float]:
    """Return the test accuracy after five steps, untrained and trained."""
    data = dataset()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = TextNetwork()
    meta = fs.MetaLearner(network, fs.maml(rate=1.0), steps=3, conditioning=fs.Conditioning(), head="zero")
    optimiser = torch.optim.Adam(meta.parameters(), 3e-3)
    tasks = Episodes(data.split("train"), ways=WAYS, shots=SHOTS, queries=QUERIES)

    def accuracy() -> float:
        tested = evaluate(
            meta, data, EvaluationSettings(shots=SHOTS, queries=QUERIES, steps=(5,), episodes=40)
        )
        return float(tested.measurement.mean()[0])

    before = accuracy()
    for update in range(updates):
        optimiser.zero_grad()
        meta([to_task(tasks[2 * update + i], meta.device) for i in range(2)]).backward()
        optimiser.step()
    after = accuracy()
    print(f"topics never met: {100 * after:.0f} % right after five steps, {100 * before:.0f} % untrained")
    return {"before": before, "after": after}


if __name__ == "__main__":
    main()
