"""The examples run, and show what they claim: the loss lowers the condition number in foreign loops."""

from __future__ import annotations

import own_loop
import with_higher


def test_plain_torch_loop_gets_a_lower_condition_number_and_a_better_first_step() -> None:
    results = own_loop.main(updates=300)
    (maml_accuracy, maml_kappa), (accuracy, kappa) = results["MAML"], results["conditioned"]
    assert kappa < 0.8 * maml_kappa
    assert accuracy[1] > maml_accuracy[1]


def test_a_loop_with_higher_gets_a_lower_condition_number() -> None:
    results = with_higher.main(updates=150)
    assert results["conditioned"] < 0.8 * results["MAML"]
