"""MetaLearner in an ordinary training loop: a scheduler, gradient clipping, a checkpoint, adaptation.

Run: python examples/meta_learner_loop.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

import firststep as fs
from toy import RATE, STEPS, Perceptron, toy_task


def make_meta_learner(gamma: float = 1.0) -> fs.MetaLearner:
    return fs.MetaLearner(
        Perceptron(), fs.maml(rate=RATE), steps=STEPS, conditioning=fs.Conditioning(weight=gamma)
    )


def meta_train(meta: fs.MetaLearner, updates: int, batch: int = 2) -> list[float]:
    """Meta-train and return the outer loss of every update."""
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.AdamW(meta.parameters(), 3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates)
    losses = []
    for _ in range(updates):
        tasks = [toy_task(generator) for _ in range(batch)]
        optimiser.zero_grad()
        loss = meta(tasks)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(meta.parameters(), 10.0)
        optimiser.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def main(updates: int = 200) -> dict[str, float]:
    meta = make_meta_learner()
    meta_train(meta, updates)

    with tempfile.TemporaryDirectory() as folder:  # save and load like any module
        torch.save(meta.state_dict(), Path(folder) / "meta.pt")
        fresh = make_meta_learner()
        fresh.load_state_dict(torch.load(Path(folder) / "meta.pt", weights_only=True))

    support, support_y, query, query_y = toy_task(torch.Generator().manual_seed(1))
    classifier = fresh.adapt(support, support_y, steps=1)
    accuracy = (classifier(query).argmax(-1) == query_y).float().mean().item()
    kappa = fresh.condition_number(support, support_y).item()
    print(f"accuracy after one step {100 * accuracy:.0f} %, condition number {kappa:.0f}")
    return {"accuracy": accuracy, "condition_number": kappa}


if __name__ == "__main__":
    main()
