"""Saved in a smaller type: the same steps and losses, a gradient that is a little off."""

from __future__ import annotations

import pytest
import torch

from firststep import MetaLearner, maml
from firststep.functional import FunctionalModule, MetaGradient
from networks import shallow_conv, shallow_task
from reference import total_error


def test_bfloat16_changes_the_gradient_by_per_cents_and_the_loss_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The traced graphs, run as they are: compiling takes a minute (benchmarks/meta_gradient.py does it)."""
    monkeypatch.setattr(torch._inductor, "compile", lambda graph, _inputs, options: graph)
    model, task = FunctionalModule(shallow_conv()), shallow_task()
    exact = MetaGradient(model, maml(0.2), steps=2)
    rounded = MetaGradient(model, maml(0.2), steps=2, compile=True, saved_dtype=torch.bfloat16)
    expected, result = exact(model.params(), {}, [task]), rounded(model.params(), {}, [task])
    torch.testing.assert_close(result.loss, expected.loss, rtol=1e-9, atol=0)
    assert 1e-5 < total_error(result.params, expected.params) < 0.05


@pytest.mark.parametrize(
    ("compile", "dtype"), [(False, torch.bfloat16), (True, torch.uint8)], ids=["eager", "integers"]
)
def test_what_cannot_be_rounded_is_refused(compile: bool, dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match=r"saved_dtype is a floating type, with compile=True, not torch\."):
        MetaLearner(shallow_conv(), maml(0.2), compile=compile, saved_dtype=dtype)
