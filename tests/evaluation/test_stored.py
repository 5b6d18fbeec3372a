"""Files of evaluations: they read back exactly, and a damaged file is refused with its field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firststep.errors import FirststepError
from firststep.evaluation import Evaluation, EvaluationSettings, load_evaluation
from firststep.training import TrainedModel, data_for, load_trained
from runs import tiny_run

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrainedModel:
    return load_trained(tiny_run(tmp_path_factory.mktemp("runs") / "run").folder)


@pytest.fixture(scope="module")
def evaluation(trained: TrainedModel) -> Evaluation:
    return trained.evaluate(data_for(trained), EvaluationSettings(episodes=3, steps=(0, 2), auto=True))


def test_a_saved_evaluation_is_repeatable_and_reads_back(
    trained: TrainedModel, evaluation: Evaluation, tmp_path: Path
) -> None:
    as_json, as_csv = evaluation.save(tmp_path / "x")
    read = load_evaluation(as_json)
    assert read.settings == evaluation.settings
    assert read.provenance == evaluation.provenance
    for name, values in evaluation.measurement.values.items():
        np.testing.assert_array_equal(read.measurement.values[name], values)
    np.testing.assert_array_equal(read.auto_steps, evaluation.auto_steps)
    assert [row["step"] for row in read.rows()] == [0, 2, "auto"]
    lines = as_csv.read_text().splitlines()
    assert lines[0] == "step,accuracy,ci95,condition_number,rank,support_loss,largest_share,class_offset"
    assert len(lines) == 4
    again = trained.evaluate(data_for(trained), EvaluationSettings(episodes=3, steps=(0, 2)))
    np.testing.assert_array_equal(again.measurement.accuracy, evaluation.measurement.accuracy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["metrics"]["accuracy"]["values"][1].pop(), r"metrics.accuracy.values: expected 3 rows"),
        (lambda c: c["metrics"]["accuracy"]["values"].pop(), r"metrics.accuracy.values: expected 3 rows"),
        (lambda c: c["metrics"].pop("accuracy"), "accuracy is missing"),
        (lambda c: c["metrics"]["accuracy"]["values"][0].__setitem__(0, "x"), r"expected float, got str"),
        (lambda c: c.update(steps=[2, 0]), "expected ascending numbers"),
        (lambda c: c.update(steps=[0, 2.5]), r"steps\[1\]: expected int, got float"),
        (lambda c: c["provenance"].pop("checkpoint"), "provenance: checkpoint is missing"),
        (lambda c: c["settings"].pop("seed"), "settings: seed is missing"),
        (lambda c: c["settings"].update(ways="5"), "settings.ways: expected int[^,]*, got str"),
        (lambda c: c.update(provenance=None), "provenance: expected object, got null"),
        (lambda c: c.update(auto_steps=None), "expected both or neither"),
        (lambda c: c["auto_steps"].pop(), "expected 3 numbers each"),
        (lambda c: c.update(format="firststep-evaluation-9"), "install a newer one"),
    ],
)
def test_a_damaged_file_names_the_field(
    evaluation: Evaluation, change: Change, message: str, tmp_path: Path
) -> None:
    path = evaluation.save(tmp_path / "x")[0]
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(FirststepError, match=message) as caught:
        load_evaluation(path)
    assert str(path) in str(caught.value)
