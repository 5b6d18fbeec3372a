"""The stacked trainings of benchmarks/regression.py against the library's meta-gradient."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import firststep as fs
from firststep.backbones import Mlp

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
STEPS, SEEDS, GAMMAS = 3, (0, 1), (0.1, 1.0)


@pytest.fixture
def stacked(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import stacked_maml

    yield stacked_maml
    sys.modules.pop("stacked_maml")


def networks():
    return [Mlp(2, 1, 6, torch.Generator().manual_seed(seed)).double() for seed in SEEDS]


@pytest.mark.parametrize("adam", [False, True])
@pytest.mark.parametrize(
    ("subset", "rows"), [("none", None), ("cls", None), ("all", None), ("cls", 3), ("all", 3)]
)
def test_loss_and_gradient_are_those_of_the_library(stacked, subset, adam, rows):
    generator = torch.Generator().manual_seed(3)
    shapes = ((2, 5, 2), (2, 5, 1), (2, 4, 2), (2, 4, 1))  # two tasks
    tasks = tuple(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    chosen = fs.functional.Residuals(rows=rows).chosen(tasks[0][0])
    loop = stacked.InnerLoop(("body.1", "body.3", "classifier"), torch.relu, 0.05, adam=adam, rows=chosen)
    members = [(gamma, network) for gamma in GAMMAS for network in networks()]
    params, _ = torch.func.stack_module_state([network for _, network in members])
    everyone = tuple(part.expand(len(members), *part.shape) for part in tasks)
    gammas = torch.tensor([gamma for gamma, _ in members], dtype=torch.float64)
    losses = stacked.outer_losses(loop, params, everyone, STEPS, subset, gammas)
    losses.sum().backward()

    rule = fs.adam(rate=0.05) if adam else fs.maml(rate=0.05)
    for number, (gamma, network) in enumerate(members):
        conditioning = None if subset == "none" else fs.Conditioning(subset=subset, weight=gamma, rows=rows)
        meta = fs.MetaLearner(network, rule, loss="squared_error", steps=STEPS, conditioning=conditioning)
        loss = meta([tuple(part[task] for part in tasks) for task in range(2)])
        loss.backward()
        torch.testing.assert_close(losses[number], loss)
        for name, value in network.named_parameters():
            torch.testing.assert_close(params[name].grad[number], value.grad, rtol=1e-5, atol=1e-7)


def test_measured_errors_are_those_of_the_adapted_network(stacked):
    generator = torch.Generator().manual_seed(4)
    shapes = ((3, 5, 2), (3, 5, 1), (3, 4, 2), (3, 4, 1))
    tasks = tuple(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    loop = stacked.InnerLoop(("body.1", "body.3", "classifier"), torch.relu, 0.05)
    params, _ = torch.func.stack_module_state(networks())
    found = stacked.measure(loop, params, tasks, 4, STEPS)
    for number, network in enumerate(networks()):
        meta = fs.MetaLearner(network, fs.maml(rate=0.05), loss="squared_error")
        for task in range(3):
            x, y, query_x, query_y = (part[task] for part in tasks)
            for step in range(5):
                adapted = meta.adapt(x, y, steps=step)
                error = (adapted(query_x) - query_y).square().mean()
                torch.testing.assert_close(found["error"][number, task, step], error)
            for subset in ("cls", "all"):
                gram = fs.functional.support_gram(meta.functional, x, y, subset=subset, loss=fs.squared_error)
                torch.testing.assert_close(found[subset][number, task, 0], gram)
