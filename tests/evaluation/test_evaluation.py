"""Evaluate trained runs: fixed episodes, paired differences, tables, figures and spectra."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from firststep import FirststepError
from firststep.evaluation import (
    METRICS,
    Evaluation,
    EvaluationSettings,
    ImageSupport,
    Measurement,
    adapt_to_images,
    comparison_figure,
    comparison_frame,
    comparison_table,
    diagnose,
    html_report,
    metrics_table,
    paired_differences,
    steps_table,
    to_task,
)
from firststep.methods import METHODS
from firststep.training import (
    Run,
    TrainedModel,
    data_for,
    load_trained,
    training_episodes,
    validation_episodes,
)
from runs import tiny_run
from selection import KINDS_OF_RULES, slow_except


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return tiny_run(tmp_path_factory.mktemp("runs") / "conditioned")


@pytest.fixture(scope="module")
def trained(run: Run) -> TrainedModel:
    return load_trained(run.folder)


@pytest.mark.parametrize("method", slow_except(METHODS, KINDS_OF_RULES))
def test_every_method_is_evaluated_and_adapted_from_its_checkpoint(method: str, tmp_path: Path) -> None:
    tiny_run(tmp_path / "run", method=method, rate=None, updates=1, validate_every=1, meta_batch=1)
    trained = load_trained(tmp_path / "run")
    result = trained.evaluate(
        data_for(trained), EvaluationSettings(episodes=2, steps=(0, 1, 4))
    )  # trained with fewer
    assert np.isfinite(result.measurement.values["condition_number"]).all()
    task = to_task(validation_episodes(trained.config, data_for(trained))[0], trained.meta.device)
    support = ImageSupport([f"class{i}" for i in range(5)], task.support_x, task.support_y)
    adapted = adapt_to_images(trained.meta, support, steps=3)
    shares = adapted.probabilities(task.query_x[:2])
    assert shares.sum(-1).tolist() == pytest.approx([1, 1])
    before = dict(trained.meta.network.named_parameters())
    moved = [name for name, value in adapted.params.items() if not value.equal(before[name])]
    assert set(moved) <= set(trained.meta.rule.moving(trained.meta.functional))
    assert moved


def test_the_first_episodes_do_not_depend_on_their_number(trained: TrainedModel) -> None:
    data = data_for(trained)
    few, more = (trained.evaluate(data, EvaluationSettings(episodes=n, steps=(1,), shots=4)) for n in (2, 3))
    np.testing.assert_array_equal(few.measurement.accuracy, more.measurement.accuracy[:2])
    assert few.settings.shots == 4  # more than in training


def test_rate_multiplier_changes_the_state_after_a_step_but_not_before(trained: TrainedModel) -> None:
    data = data_for(trained)
    one, large = (
        trained.evaluate(data, EvaluationSettings(episodes=3, steps=(0, 1), rate_multiplier=m)).measurement
        for m in (1.0, 50.0)
    )
    kappa, other = one.values["condition_number"], large.values["condition_number"]
    np.testing.assert_array_equal(kappa[:, 0], other[:, 0])
    assert (kappa[:, 1] != other[:, 1]).all()
    with pytest.raises(FirststepError, match="`rate_multiplier` must be a positive number"):
        trained.evaluate(data, EvaluationSettings(rate_multiplier=0))


def made_up(accuracy: np.ndarray, label: str, seed: int = 0, rank: float | None = 4.0) -> Evaluation:
    """Make an evaluation with given accuracies; ``rank=None`` leaves that metric out."""
    values = {"accuracy": accuracy, "condition_number": np.ones_like(accuracy)}
    if rank is not None:
        values["rank"] = np.full_like(accuracy, rank)
    return Evaluation(
        label=label,
        run=label,
        data="glyphs",
        data_fingerprint="f",
        settings=EvaluationSettings(
            steps=(0, 1), ways=5, shots=1, queries=2, seed=seed, episodes=len(accuracy), subset="cls"
        ),
        measurement=Measurement(
            steps=(0, 1),
            values=values,
            metrics={name: METRICS[name] for name in values},
        ),
        provenance={"config": {}, "update": 1, "firststep": "0", "torch": "0"},
    )


def test_paired_differences_are_computed_per_episode() -> None:
    rng = np.random.default_rng(0)
    hard = rng.normal(0.5, 0.2, size=(100, 1))  # difficulty of each episode for both models
    first = made_up(np.concatenate([hard, hard], 1), "first")
    second = made_up(np.concatenate([hard, hard + 0.02 + 0.001 * rng.normal(size=(100, 1))], 1), "second")
    zero, one = paired_differences(first, second)
    assert (zero.difference, zero.ci95, zero.is_clear) == (0, 0, False)
    assert one.difference == pytest.approx(2.0, abs=0.05)
    assert one.ci95 < 0.05  # far narrower than the interval of either mean
    assert first.rows()[1]["ci95"] > 3
    assert one.is_clear


def test_evaluations_on_different_episodes_are_refused() -> None:
    accuracy = np.full((3, 2), 0.5)
    with pytest.raises(FirststepError, match=r"different episodes \(seed 0 and 1\)"):
        paired_differences(made_up(accuracy, "a"), made_up(accuracy, "b", seed=1))


def test_tables_figures_and_report_show_the_numbers(run: Run) -> None:
    rng = np.random.default_rng(1)
    pair = [made_up(rng.uniform(size=(9, 2)), "plain"), made_up(rng.uniform(size=(9, 2)), "<conditioned>")]
    cell = f"{100 * pair[1].at(1).mean():.2f}"
    assert cell in comparison_table(pair).to_markdown()
    assert cell in comparison_table(pair).to_csv()
    assert len(comparison_frame(pair)) == 4
    assert [row[0].text for row in steps_table(pair).rows] == ["0", "1", "condition number", "rank"]
    old = made_up(rng.uniform(size=(9, 2)), "old", rank=None)
    assert [cell.text for cell in steps_table([pair[0], old]).rows[-1][1:3]] == ["4", "–"]
    assert len(comparison_frame([pair[0], old])) == 4
    assert comparison_table([old]).rows[0][-1].text == "–"
    assert metrics_table(pair[1]).rows[1][1].text == cell
    metrics = [run.metrics(), run.metrics()]
    page = html_report(pair, metrics, "title & more")
    assert cell in page
    assert "&lt;conditioned&gt;" in page
    assert "title &amp; more" in page
    assert "http" not in page.replace("http-equiv", "")  # self-contained
    figure = comparison_figure(pair, metrics)
    assert [axes.get_xlabel() for axes in figure.axes] == ["inner steps", "meta-updates", "meta-updates"]
    assert len(comparison_figure(pair, [[], []]).axes) == 1


def test_diagnosis_reports_each_subset(trained: TrainedModel) -> None:
    data = data_for(trained)
    episodes = training_episodes(trained.config, data)
    tasks = [to_task(episodes[i], trained.meta.device) for i in range(2)]
    spectra = diagnose(trained.meta.functional, tasks, ("cls", "all"))
    for spectrum in spectra:
        assert spectrum.eigenvalues.shape == (2, 10)
        assert (np.diff(spectrum.eigenvalues, axis=1) <= 0).all()
        assert spectrum.condition_number >= 1
    with pytest.raises(FirststepError, match="unknown parameter subset"):
        diagnose(trained.meta.functional, tasks, ("everything",))
