"""Adapters of a transformer: nothing else moves, and the base is frozen or meta-learned."""

from __future__ import annotations

import pytest
import torch

from third_party import import_transformers


@pytest.mark.parametrize("learn_base", [False, True])
def test_only_the_adapters_move(learn_base: bool) -> None:
    import_transformers()
    import lora

    meta = lora.learner(learn_base)
    words = torch.randint(1, len(lora.WORDS), (10, lora.LENGTH), generator=torch.Generator().manual_seed(0))
    task = (words, torch.arange(10) % 5, words.flip(0), torch.arange(10).flip(0) % 5)
    with torch.no_grad():  # away from 0, where half of the adapters has no gradient
        for name, value in meta.network.named_parameters():
            if "lora_up" in name:
                value.add_(0.1)
    before = {name: value.detach().clone() for name, value in meta.functional.params().items()}
    adapted = meta.adapted_params(*task[:2], steps=2)
    rows = ("classifier.weight", "classifier.bias")
    moved = {name for name in before if name not in rows and not torch.equal(adapted[name], before[name])}
    adapters = {name for name in before if "lora_" in name}
    assert moved == adapters
    assert len(adapters) == 8
    meta([task]).backward()
    learned = {name for name, p in meta.network.named_parameters() if p.grad is not None and p.grad.any()}
    assert adapters <= learned
    assert (learned == adapters) == (not learn_base)
