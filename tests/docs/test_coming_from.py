"""The tables of docs/coming-from.md: our column is valid, and inner optimisers are those of the others.

tests/docs/test_snippets.py runs the page's blocks, which compare meta-gradients.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import higher
import pytest
import torch
import torchopt
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import firststep as fs
from docsite.paths import DOCS

ROWS = re.findall(
    r"^\| (?!firststep|-)(.*) \| (.*) \|$", (DOCS / "coming-from.md").read_text("utf-8"), re.MULTILINE
)
OURS = [code for _, ours in ROWS for code in re.findall(r"`((?:fs|meta|torch\.optim)\b[^`]*)`", ours)]


def network() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 5)).double()


def task() -> fs.Task:
    source = torch.Generator().manual_seed(1)
    points = torch.randn(40, 8, generator=source, dtype=torch.float64)
    labels = torch.arange(5).repeat(8)
    return fs.Task(points[:15], labels[:15], points[15:], labels[15:])


def test_ten_lines_of_each_library() -> None:
    assert len(ROWS) == 5 * (10 + 1)  # with the titles


@pytest.mark.parametrize("code", OURS)
def test_our_column_is_valid(code: str) -> None:
    model, given = network(), task()
    meta = fs.MetaLearner(model, steps=2)
    names = {"fs": fs, "torch": torch, "model": model, "meta": meta, "tasks": [given]}
    names |= {"x": given.support_x, "y": given.support_y, "query_x": given.query_x, "query_y": given.query_y}
    exec(code.replace("(...", "(model").replace("model.fc", "model[2]"), names)


def higher_gradient(make: Callable[[list[nn.Parameter]], torch.optim.Optimizer]) -> list[Tensor]:
    model, given = network(), task()
    inner = make(list(model.parameters()))
    with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (fast, steps):
        for _ in range(3):
            steps.step(cross_entropy(fast(given.support_x), given.support_y))
        cross_entropy(fast(given.query_x), given.query_y).backward()
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def torchopt_gradient(make: Callable[[nn.Module], torchopt.MetaOptimizer]) -> list[Tensor]:
    model, given = network(), task()
    start = torchopt.extract_state_dict(model, by="reference")
    inner = make(model)
    for _ in range(3):
        inner.step(cross_entropy(model(given.support_x), given.support_y))
    loss = cross_entropy(model(given.query_x), given.query_y)
    torchopt.recover_state_dict(model, start)
    return list(torch.autograd.grad(loss, list(model.parameters())))


PAIRS: list[tuple[str, Callable[[], list[Tensor]], fs.Rule]] = [
    ("higher SGD", lambda: higher_gradient(lambda p: torch.optim.SGD(p, 0.1)), fs.maml(rate=0.1)),
    (
        "higher momentum",
        lambda: higher_gradient(lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
        fs.momentum(rate=0.1, decay=0.9),
    ),
    (
        "torchopt momentum",
        lambda: torchopt_gradient(lambda m: torchopt.MetaSGD(m, lr=0.1, momentum=0.9)),
        fs.momentum(rate=0.1, decay=0.9),
    ),
    ("torchopt Adam", lambda: torchopt_gradient(lambda m: torchopt.MetaAdam(m, lr=0.1)), fs.adam(rate=0.1)),
    (
        "torchopt weight decay",
        lambda: torchopt_gradient(lambda m: torchopt.MetaSGD(m, lr=0.1, weight_decay=0.01)),
        fs.chain(fs.weight_decay(0.01), fs.maml(rate=0.1)),
    ),
]


@pytest.mark.parametrize(("theirs", "rule"), [pair[1:] for pair in PAIRS], ids=[pair[0] for pair in PAIRS])
def test_an_inner_optimiser_is_that_of_the_other_library(
    theirs: Callable[[], list[Tensor]], rule: fs.Rule
) -> None:
    """Adam's ε stands elsewhere in theirs, which the second derivative sees."""
    rtol, atol = (1e-2, 1e-4) if rule.name == "adam" else (1e-6, 1e-9)
    model = network()
    fs.MetaLearner(model, rule, steps=3)([task()]).backward()
    for ours, expected in zip(model.parameters(), theirs(), strict=True):
        torch.testing.assert_close(ours.grad, expected, rtol=rtol, atol=atol)
