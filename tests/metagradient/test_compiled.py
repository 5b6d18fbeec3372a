"""Compiled step and pull-back: the same numbers, one compilation whatever K is, a clean fall-back."""

from __future__ import annotations

import warnings

import pytest
import torch

from firststep import Conditioning, Learner, MetaGradient, maml
from firststep.metagradient import compiled
from firststep.metagradient.stepwise import Stepwise
from networks import small_conv, small_task
from reference import total_error


def engine(learner: Learner, steps: int, subset: str = "cls", compile: bool = True) -> MetaGradient:
    return MetaGradient(
        learner, maml(0.2), steps=steps, conditioning=Conditioning(subset=subset), compile=compile
    )


def test_same_numbers_and_one_compilation_whatever_the_number_of_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compilations = []
    compile_graph = torch.compile
    monkeypatch.setattr(torch, "compile", lambda *a, **k: compilations.append(1) or compile_graph(*a, **k))
    learner, task = Learner(small_conv()), small_task()
    fast = engine(learner, steps=1)
    for steps in (1, 3):
        assert isinstance(fast._task, Stepwise)
        fast._task.steps = steps
        expected = engine(learner, steps, compile=False)(learner.params(), {}, [task, small_task(seed=6)])
        result = fast(learner.params(), {}, [task, small_task(seed=6)])
        assert total_error(result.params, expected.params) < 1e-10
        torch.testing.assert_close(result.loss, expected.loss)
        for got, report in zip(result.tasks, expected.tasks, strict=True):
            torch.testing.assert_close(got.condition_numbers, report.condition_numbers)
    assert len(compilations) == 3  # the step, the query gradient, the pull-back


def test_failure_to_compile_falls_back_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise RuntimeError("no C++ compiler here\nand a long story")

    monkeypatch.setattr(compiled.torch, "compile", broken)
    learner, task = Learner(small_conv()), small_task()
    fast = engine(learner, steps=2)
    expected = engine(learner, steps=2, compile=False)(learner.params(), {}, [task])
    with pytest.warns(RuntimeWarning, match=r"compiling failed.*no C\+\+ compiler here\)$") as caught:
        result = fast(learner.params(), {}, [task])
    assert len(caught) == 1
    assert total_error(result.params, expected.params) < 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = fast(learner.params(), {}, [task])
    assert total_error(again.params, expected.params) < 1e-12
