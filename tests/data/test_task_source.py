"""Task sources: the same tasks from the same seed, their checks, and arrays with targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from firststep import FirststepError
from firststep.data import TASKS, TaskSource, from_arrays, open_tasks

SINUSOID = open_tasks("sinusoid")


def test_sinusoids_are_those_of_finn_et_al() -> None:
    tasks = SINUSOID.tasks("train", shots=5, queries=200, seed=1)
    amplitudes = []
    for number in range(50):
        task = tasks[number]
        x, y = (np.concatenate(part).astype(float)[:, 0] for part in (task[::2], task[1::2]))
        assert x.shape == (205,)
        assert np.abs(x).max() <= 5
        # y = A sin(x - φ) = a sin x + b cos x: two unknowns fit all points.
        basis = np.stack([np.sin(x), np.cos(x)], 1)
        (a, b), *_ = np.linalg.lstsq(basis, y, rcond=None)
        assert np.allclose(basis @ [a, b], y, atol=1e-5)
        assert b <= 1e-6  # -A sin φ, with φ in [0, π]
        amplitudes.append(np.hypot(a, b))
    assert 0.1 <= min(amplitudes) < 1 < 4 < max(amplitudes) <= 5


def test_tasks_depend_on_everything_that_identifies_them_and_on_nothing_else() -> None:
    def first(split: str = "train", number: int = 0, **options: int) -> np.ndarray:
        asked = {"shots": 5, "queries": 5, **options}
        task = open_tasks("sinusoid").tasks(split, **asked)[number]
        return np.asarray(task.support_y)

    same = first()
    assert np.array_equal(same, first())
    for other in (first("val"), first("test"), first(number=1), first(seed=1), first(queries=6)):
        assert not np.array_equal(same, other)


def test_fingerprints_tell_sources_apart() -> None:
    def lines(generator: np.random.Generator, shots: int, queries: int) -> tuple[np.ndarray, ...]:
        x = generator.uniform(size=(shots + queries, 1))
        return x[:shots], x[:shots], x[shots:], x[shots:]

    def other(generator: np.random.Generator, shots: int, queries: int) -> tuple[np.ndarray, ...]:
        support_x, support_y, query_x, query_y = lines(generator, shots, queries)
        return support_x, 2 * support_y, query_x, 2 * query_y

    assert TaskSource("a", lines).fingerprint == TaskSource("a", lines).fingerprint
    assert TaskSource("a", lines).fingerprint != TaskSource("a", other).fingerprint
    assert TaskSource("a", lines).fingerprint != TaskSource("b", lines).fingerprint


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda generator: None, r"must give \(support_x, support_y, query_x, query_y\), not NoneType"),
        (lambda generator: (1 / 0,), "tasks odd failed: ZeroDivisionError"),
        (lambda generator: (["a"],) * 4, "tasks odd must give arrays of numbers"),
    ],
)
def test_functions_that_give_no_task(make: Any, message: str) -> None:
    with pytest.raises(FirststepError, match=message):
        TaskSource("odd", make)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sinusoids", "unknown task source 'sinusoids'; did you mean sinusoid"),
        ("nowhere:tasks", r"tasks nowhere:tasks: cannot import it \(No module named 'nowhere'\)"),
        ("math:pi", "math:pi is a float, not a function"),
    ],
)
def test_names_that_are_no_source(name: str, message: str) -> None:
    with pytest.raises(FirststepError, match=message):
        open_tasks(name)


def test_bad_numbers_and_splits_are_named() -> None:
    with pytest.raises(FirststepError, match="shots must be at least 1"):
        SINUSOID.tasks("train", shots=0, queries=1)
    with pytest.raises(FirststepError, match="sinusoid has no split 'dev'"):
        SINUSOID.tasks("dev", shots=1, queries=1)
    with pytest.raises(IndexError, match="numbered from 0"):
        _ = SINUSOID.tasks("train", shots=1, queries=1)[-1]
    assert list(TASKS) == ["sinusoid"]


def test_arrays_with_targets_are_many_small_problems() -> None:
    generator = np.random.default_rng(0)
    slopes = np.repeat([1.0, 2.0, 3.0, 4.0], 10)
    x = generator.normal(size=(40, 2)).astype(np.float32)
    y = slopes * x[:, 0]
    names = np.repeat(["a", "b", "c", "d"], 10)
    source = from_arrays(x, names, {"train": ["a", "b"], "test": ["c", "d"]}, targets=y)
    assert isinstance(source, TaskSource)
    tasks = source.tasks("test", shots=4, queries=6)
    seen = set()
    for number in range(20):
        task = tasks[number]
        assert task.support_y.shape == (4, 1)
        slope = np.concatenate([task.support_y, task.query_y])[:, 0] / np.concatenate(task[::2])[:, 0]
        assert np.allclose(slope, slope[0], rtol=1e-4)  # all of one problem, support and query apart
        assert len({*task.support_x[:, 0], *task.query_x[:, 0]}) == 10
        seen.add(round(float(slope[0])))
    assert seen == {3, 4}
    with pytest.raises(FirststepError, match="has 10 samples, but 8 shots \\+ 6 queries need 14"):
        _ = source.tasks("test", shots=8, queries=6)[0]
    with pytest.raises(
        FirststepError, match="`targets` must be numbers, one entry for each of the 40 samples"
    ):
        from_arrays(x, names, {"train": ["a"]}, targets=y[:3])
