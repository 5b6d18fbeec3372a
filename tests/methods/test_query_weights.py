"""Weights of the query losses after every inner step: MAML++'s, equal ones, and their use in training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from firststep import METHODS, QUERY_WEIGHTS, annealed_query_weights, build_method
from firststep.evaluation import to_task
from firststep.training import build_meta_learner, open_data, train, training_episodes
from runs import TINY


def test_annealing() -> None:
    assert annealed_query_weights(0, 1000, 5) == pytest.approx((0.2,) * 5)
    assert annealed_query_weights(50, 1000, 5) == pytest.approx((0.1,) * 4 + (0.6,))
    for update in range(0, 100, 7):
        weights = annealed_query_weights(update, 1000, 5)
        assert weights is not None
        assert sum(weights) == pytest.approx(1)
    assert annealed_query_weights(100, 1000, 5) is None
    assert annealed_query_weights(10**6, 1000, 5) is None
    assert annealed_query_weights(0, 1000, 1) is None  # one step: there is nothing else to count
    assert annealed_query_weights(0, 1, 5) == pytest.approx((0.2,) * 5)


@pytest.mark.parametrize("name", METHODS)
def test_only_maml_plus_plus_counts_earlier_steps(name: str) -> None:
    weights = build_method(name, steps=3).query_weights(0, 1000, 3)
    assert (weights is not None) == (name == "maml++")


@pytest.mark.parametrize("arguments", [(-1, 10, 5), (0, 0, 5), (0, 10, 0)])
def test_bad_arguments_are_named(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="update must be at least 0, updates and steps at least 1"):
        annealed_query_weights(*arguments)


@pytest.mark.parametrize("name", ["last", "equal", "annealed"])
def test_training_is_the_loop_that_passes_them(name: str, tmp_path: Path) -> None:
    config = replace(TINY, updates=3, validate_every=3, query_weights=name)
    last = train(config, tmp_path / "run").load("last", torch.device("cpu"))
    data = open_data(config)
    meta = build_meta_learner(config, data.preprocessing)
    episodes = training_episodes(config, data)
    optimizer = torch.optim.Adam(meta.parameters(), config.outer_rate)
    for update in range(3):
        first = update * config.meta_batch
        tasks = [to_task(episodes[first + n], meta.device) for n in range(config.meta_batch)]
        optimizer.zero_grad()
        meta(tasks, query_weights=QUERY_WEIGHTS[name](update, 3, config.steps)).backward()
        optimizer.step()
    for parameter, expected in meta.state_dict().items():
        torch.testing.assert_close(last.model[parameter], expected, rtol=2e-4, atol=2e-6)
    assert config.method_label == f"maml, {name} weights"
