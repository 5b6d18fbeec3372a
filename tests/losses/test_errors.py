"""Arguments that do not fit are refused in one line that says what to do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import firststep as fs

X = torch.randn(6, 3)
Y = torch.randn(6, 2)


def learner(**options: Any) -> fs.MetaLearner:
    return fs.MetaLearner(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), **options)


def negative(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output - target).square().sum(1) - 10


CASES: dict[str, tuple[Any, str]] = {
    "negative": (
        lambda: learner(loss=negative, conditioning=fs.Conditioning())([(X, Y, X, Y)]),
        r"loss negative is negative \(.*conditioning=None",
    ),
    "shapes": (
        lambda: learner(loss="squared_error")([(X, Y[:, :1], X, Y[:, :1])]),
        r"squared_error: output and target must have one shape, not \[6, 2\] and \[6, 1\]",
    ),
    "samples": (
        lambda: learner(loss=lambda z, y: (z - y).square())([(X, Y, X, Y)]),
        r"expected one loss per sample, shape \[6\], not \[6, 2\]",
    ),
    "output": (
        lambda: learner(loss="token_cross_entropy")([(X, Y, X, Y)]),
        "token_cross_entropy: expected logits with one dimension more than the integer labels",
    ),
    "floats for classes": (lambda: learner()([(X, Y[:, 0], X, Y[:, 0])]), "use loss='squared_error'"),
    "no targets": (lambda: learner(loss="huber")([(X, Y[:0], X, Y)]), "support_y has no samples"),
    "list": (lambda: learner(loss="huber").adapt(X, [1.0]), "must be a tensor with one entry per sample"),
    "name": (lambda: learner(loss="mse"), "unknown loss 'mse'"),
    "kind": (lambda: learner(loss=3), "loss must be a name"),
    "option": (lambda: fs.huber.configure(beta=1.0), "has no option 'beta'; its options are: delta"),
    "residuals": (
        lambda: learner(loss="huber", conditioning=fs.Conditioning(residuals="outputs")),
        "residuals='outputs' is for squared_error",
    ),
    "residual kind": (lambda: fs.Conditioning(residuals="rows"), "must be 'samples' or 'outputs'"),
    "rows": (lambda: fs.Conditioning(rows=1), "rows must be at least 2"),
    "head": (lambda: learner(loss="huber", head="shared"), "head='shared' needs targets that are classes"),
    "gauss-newton": (
        lambda: learner(rule=fs.gauss_newton(), loss="huber")([(X, Y, X, Y)]),
        "gauss-newton is for networks that end in a linear layer, with loss='cross_entropy'",
    ),
    "parts": (
        lambda: learner(loss="huber").adapt(X, {"a": Y, "b": Y[:2]}),
        r"its tensors must have one entry per sample each, not \[2, 6\]",
    ),
    "moves": (lambda: learner(moves=["none.*"]), "no parameter matches 'none"),
}


@pytest.mark.parametrize("case", CASES)
def test_clear_errors(case: str) -> None:
    make, message = CASES[case]
    with pytest.raises((ValueError, TypeError), match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_networks_without_a_linear_layer_work_with_all() -> None:
    class Line(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slope, self.offset = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[:, :2] * self.slope + self.offset

    meta = fs.MetaLearner(Line(), loss="squared_error", conditioning=fs.Conditioning(subset="all"))
    meta([(X, Y, X, Y)]).backward()
    assert meta.condition_number(X, Y, "all") >= 1
    with pytest.raises(ValueError, match=r"Line has no nn\.Linear, so there is no subset 'cls'"):
        meta.condition_number(X, Y)
    plain = fs.MetaLearner(Line(), loss="squared_error")
    _, report = plain([(X, Y, X, Y)], return_report=True)
    assert report.condition_numbers.isnan().all()
