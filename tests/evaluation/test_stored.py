"""Files of evaluations: damaged ones are refused by name, those of the format before load."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firststep.errors import FirststepError
from firststep.evaluation import Evaluation, load_evaluation
from firststep.training import data_for, load_trained
from runs import tiny_run

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    trained = load_trained(tiny_run(tmp_path_factory.mktemp("runs") / "run").folder)
    return trained.evaluate(data_for(trained), episodes=3, steps=(0, 2), auto=True)


def test_what_was_saved_comes_back(evaluation: Evaluation, tmp_path: Path) -> None:
    read = load_evaluation(evaluation.save(tmp_path / "x")[0])
    assert read.settings == evaluation.settings
    assert read.provenance == evaluation.provenance
    for name, values in evaluation.measurement.values.items():
        np.testing.assert_array_equal(read.measurement.values[name], values)
    assert read.auto_steps is not None


def test_a_file_of_the_format_before_loads(evaluation: Evaluation, tmp_path: Path) -> None:
    path = evaluation.save(tmp_path / "x")[0]
    content = json.loads(path.read_text())
    metrics = content.pop("metrics")
    old = {
        **{key: value for key, value in content.items() if key not in ("format", "provenance")},
        "origin": content["provenance"],
        "accuracy": metrics["accuracy"]["values"],
        "log10_condition_number": metrics["condition_number"]["values"],
    }
    path.write_text(json.dumps(old))
    read = load_evaluation(path)
    np.testing.assert_allclose(read.at(2), evaluation.at(2), atol=1e-6)
    assert read.provenance == evaluation.provenance


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["metrics"]["accuracy"]["values"][1].pop(), r"metrics.accuracy.values are not 3 rows"),
        (lambda c: c["metrics"]["accuracy"]["values"].pop(), r"metrics.accuracy.values are not 3 rows"),
        (lambda c: c["metrics"].pop("accuracy"), "accuracy is missing"),
        (lambda c: c["metrics"]["accuracy"]["values"][0].__setitem__(0, "x"), r"expected float, got str"),
        (lambda c: c.update(steps=[2, 0]), "are not ascending"),
        (lambda c: c.update(steps=[0, 2.5]), r"steps\[1\]: expected int, got float"),
        (lambda c: c["settings"].pop("seed"), "settings: seed is missing"),
        (lambda c: c["settings"].update(ways="5"), "settings.ways: expected int, got str"),
        (lambda c: c.update(provenance=None), "provenance: expected object, got null"),
        (lambda c: c.update(auto_steps=None), "belong together"),
        (lambda c: c["auto_steps"].pop(), "do not have 3 numbers"),
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
