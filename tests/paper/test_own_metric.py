"""A registered metric appears in the numbers and tables of experiments like those of firststep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from torch import Tensor

from firststep.evaluation import METRICS, AdaptationState, Metric
from firststep.jobs import InlineExecutor
from firststep.paper import (
    Changes,
    Experiment,
    ExperimentSettings,
    Row,
    Scale,
    protocol,
    read_results,
    run_experiments,
    within,
    write_result,
)


def confidence(state: AdaptationState) -> Tensor:
    return state.query.logits.softmax(-1).amax(-1).mean()


@pytest.fixture
def registered() -> Iterator[None]:
    METRICS.register("confidence", Metric(title="confidence", compute=confidence, percent=True))
    yield
    if "confidence" in METRICS:
        METRICS.unregister("confidence")


@pytest.mark.usefixtures("registered")
def test_a_registered_metric_is_in_the_numbers_and_in_the_table(tmp_path: Path) -> None:
    row = Row(label="maml", config=protocol("glyphs", "conv4", conditioned=False), tests=(within(),))
    experiment = Experiment(name="one-row", title="One row", rows=(row,))
    settings = ExperimentSettings(Scale("smoke", Changes(all_every=0, seeds=(0, 1))), {"glyphs": None})
    (result,) = run_experiments([experiment], settings, tmp_path / "runs", InlineExecutor())
    assert result.table.columns[-3:] == ["κ", "rank", "confidence %"]
    folder = write_result(result, tmp_path)
    seeds = pd.read_csv(folder / "by-seed.csv", comment="#").set_index(["seed", "step"])
    numbers = pd.read_csv(folder / "numbers.csv", comment="#").set_index("step")
    both = seeds["confidence"].unstack("seed")
    assert numbers["confidence"].tolist() == pytest.approx(both.mean(axis=1).tolist(), abs=1e-3)
    # Student's t of two trainings: 12.706 · std / sqrt(2)
    widths = 12.7062 * both.std(axis=1) / 2**0.5
    assert numbers["confidence_ci95"].tolist() == pytest.approx(widths.tolist(), abs=1e-2)
    assert set(result.histories["quantity"]) >= {"accuracy", "confidence"}
    shown = f"| {numbers.at[0, 'confidence']:.1f} |"
    assert shown in (folder / "README.md").read_text(encoding="utf-8")
    # It is read where the metric is not registered, too.
    METRICS.unregister("confidence")
    (saved,) = read_results(tmp_path)
    assert saved.record.table.shows == ["condition_number", "rank", "confidence"]
    assert saved.cells["confidence"].between(0, 100).all()
