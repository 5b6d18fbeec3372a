"""Saved tensors in a smaller dtype: the same steps and losses, a slightly inexact gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from firststep import Conditioning, MetaLearner, maml
from firststep.functional import EngineOptions, FunctionalModule, MetaGradient
from networks import shallow_conv, shallow_task
from reference import total_error


@pytest.mark.parametrize("conditioning", [None, Conditioning()], ids=["plain", "conditioned"])
def test_bfloat16_changes_the_gradient_by_per_cents_but_not_the_query_loss(
    conditioning: Conditioning | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the traced graphs uncompiled: compiling takes a minute (benchmarks/meta_gradient.py does it).

    The conditioning loss is computed from rounded images, but its Gram matrix is not rounded again.
    """
    monkeypatch.setattr(torch._inductor, "compile", lambda graph, _inputs, options: graph)
    model, task = FunctionalModule(shallow_conv()), shallow_task()
    options: dict[str, Any] = {"steps": 2, "conditioning": conditioning}
    exact = MetaGradient(model, maml(0.2), **options)
    rounded = MetaGradient(
        model, maml(0.2), options=EngineOptions(compile=True, saved_dtype=torch.bfloat16), **options
    )
    expected, result = exact(model.params(), {}, [task]), rounded(model.params(), {}, [task])
    error = total_error(result.params, expected.params)
    got, exact_report = result.tasks[0], expected.tasks[0]
    torch.testing.assert_close(got.query_loss, exact_report.query_loss, rtol=1e-9, atol=0)
    torch.testing.assert_close(got.conditioning, exact_report.conditioning, rtol=1e-3, atol=0)
    assert 1e-5 < error < 0.05


@pytest.mark.parametrize(
    ("compile", "dtype"),
    [(False, torch.bfloat16), (True, torch.uint8), (True, "bfloat16")],
    ids=["eager", "integers", "a name"],
)
def test_other_dtypes_and_uncompiled_steps_are_refused(compile: bool, dtype: Any) -> None:
    with pytest.raises(ValueError, match=r"saved_dtype is a floating type, with compile=True, not "):
        MetaLearner(shallow_conv(), maml(0.2), compile=compile, saved_dtype=dtype)
