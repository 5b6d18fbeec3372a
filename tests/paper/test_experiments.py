"""The runner of experiments: trains what is missing once, resumes, survives a failure, marks gaps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firststep import FirststepError
from firststep.paper.experiments import Experiment, experiment, run_name
from firststep.paper.runner import collect, run_experiment
from firststep.paper.tables import MISSING, markdown, results_table
from firststep.rules import METHODS
from runs import TINY


def small(**runs: object) -> Experiment:
    return Experiment(title="Small", runs=runs, steps=(0, 1), episodes=2, note="Tiny.")  # type: ignore[arg-type]


def test_runs_once_then_skips_and_a_failure_is_named_and_survived(tmp_path: Path) -> None:
    good = replace(TINY, updates=2)
    broken = replace(good, outer_rate=1e30, updates=30)  # diverges
    chosen = Experiment(
        title="Small",
        runs={"a": good, "a + conditioning": replace(good, seed=1), "bad": broken, "again": good},
        steps=(0, 1),
        episodes=2,
        note="Tiny.",
    )
    seen: dict[str, str] = {}
    failed = run_experiment(chosen, tmp_path, lambda row, outcome: seen.update({row: outcome}))
    assert list(failed) == ["bad"]
    assert "not finite" in failed["bad"]
    assert sum(outcome == "trained" for outcome in seen.values()) == 2  # "a" and "again" share a run
    results = collect(chosen, tmp_path)
    assert results["bad"] is None
    table = results_table(chosen, results).set_index("method")
    assert table.loc["bad", "step 1"] == MISSING
    assert table.loc["a", "step 1"] == table.loc["again", "step 1"]
    assert "±" in table.loc["a + conditioning", "gain at step 1"]
    assert "| bad | missing |" in markdown(chosen, results, "firststep paper run small")
    again: dict[str, str] = {}
    run_experiment(replace(chosen, runs={"a": good}), tmp_path, lambda row, out: again.update({row: out}))
    assert again == {"a": "was done"}


def test_a_cut_run_is_resumed(tmp_path: Path) -> None:
    from firststep.training import train

    config = replace(TINY, updates=2)
    train(config, tmp_path / run_name(config))
    seen: dict[str, str] = {}
    run_experiment(small(row=config), tmp_path, lambda row, outcome: seen.update({row: outcome}))
    assert seen == {"row": "resumed"}


def test_run_names_follow_the_configuration() -> None:
    assert run_name(TINY) == run_name(replace(TINY, cache=Path("elsewhere")))
    assert run_name(TINY) != run_name(replace(TINY, seed=1))


def test_rivals_cover_every_method_with_and_without_conditioning() -> None:
    runs = experiment("rivals-glyphs").runs
    assert set(runs) == {name for method in METHODS for name in (method, f"{method} + conditioning")}
    budgets = {(config.updates, config.meta_batch, config.filters, config.seed) for config in runs.values()}
    assert len(budgets) == 1
    with pytest.raises(FirststepError, match="did you mean rivals-glyphs"):
        experiment("rivals-glyph")
