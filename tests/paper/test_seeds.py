"""Several trainings of each row: means and Student-t intervals over them, gains paired by seed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from firststep import FirststepError
from firststep.cli import main
from firststep.evaluation import load_evaluation
from firststep.paper import EXPERIMENTS, Changes, ExperimentSettings, Scale, collect_result, plan
from firststep.paper.comparison_table import beside_paper, build_table, layout_of
from firststep.paper.measurements import accuracy_frame, seed_columns, tidy
from firststep.paper.over_seeds import logs_over_seeds, student_half_width, student_quantile
from firststep.paper.plan import run_name

HERE = ("--scale", "smoke", "--executor", "inline", "--data", "glyphs")
GLYPHS = {"glyphs": None}


@pytest.mark.parametrize(
    ("degrees", "printed"),
    # Any printed table of Student's t, two-sided 95 %
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (10, 2.228), (29, 2.045), (1000, 1.962)],
)
def test_students_t_is_that_of_printed_tables(degrees: int, printed: float) -> None:
    assert student_quantile(degrees) == pytest.approx(printed, abs=5e-4)


def test_half_width_by_hand() -> None:
    # mean 62, squared deviations 4 + 0 + 4, std 2, t 4.303 at two degrees of freedom
    assert student_half_width([60.0, 62.0, 64.0]) == pytest.approx(4.3027 * 2 / math.sqrt(3), abs=1e-3)
    assert math.isnan(student_half_width([60.0]))


def measured(row: str, seed: int, accuracy: float, gain: float = math.nan) -> dict[str, object]:
    facts = {"dataset": "glyphs", "backbone": "conv6", "ways": 5, "shots": 5, "step": 0, "rate_multiplier": 1}
    kappa = {0: 10.0, 1: 1000.0, 2: 100.0}[seed]
    return {
        **facts, "row": row, "seed": seed, "accuracy": accuracy, "ci95": 9.0, "condition_number": kappa,
        "rank": 20 + seed, "gain": gain, "gain_ci95": 9.0, "over": "maml" if gain == gain else "",
    }  # fmt: skip


def table(cells: pd.DataFrame) -> str:
    table3 = EXPERIMENTS["table3"]()
    return build_table(layout_of(table3, table3.rows, cells), cells, seeds=3).to_markdown()


def test_cells_are_means_over_trainings_and_gains_are_paired_by_seed() -> None:
    by_seed = tidy(
        [
            *(measured("maml", seed, accuracy) for seed, accuracy in enumerate((50.0, 60.0, 70.0))),
            measured("conditioned", 0, 53.0, gain=3.0),
            measured("conditioned", 1, 64.0, gain=4.0),
        ],
        seed_columns(),
    )
    frame = accuracy_frame(by_seed, pd.DataFrame(), {"conditioned": "maml"}, seeds=3).set_index("row")
    maml, conditioned = frame.loc["maml"], frame.loc["conditioned"]
    assert (maml["accuracy"], maml["seeds"]) == (60.0, 3)
    assert maml["ci95"] == pytest.approx(4.3027 * 10 / math.sqrt(3), abs=1e-3)
    assert maml["condition_number"] == pytest.approx(100.0)  # geometric mean
    assert maml["rank"] == 21
    # The accuracies spread by 11 points, their paired gains by 1.
    assert (conditioned["gain"], conditioned["gain_seeds"], conditioned["over"]) == (3.5, 2, "maml")
    assert conditioned["gain_ci95"] == pytest.approx(12.706 * math.sqrt(0.5) / math.sqrt(2), abs=1e-3)
    text = table(beside_paper(frame.reset_index()))
    assert "| maml | ours | 60.00 ± 24.84 | 100 | 21 |" in text
    assert "| conditioned | ours | 58.50 ± 69.88 (2 of 3) |" in text
    assert "| gain, ours | +3.50 ± 6.35 (2 of 3) |" in text


def test_one_training_of_several_has_no_interval_and_one_alone_keeps_its_own() -> None:
    by_seed = tidy([measured("maml", 1, 50.0)], seed_columns())
    (three,) = accuracy_frame(by_seed, pd.DataFrame(), {}, seeds=3).to_dict("records")
    (one,) = accuracy_frame(by_seed, pd.DataFrame(), {}, seeds=1).to_dict("records")
    assert math.isnan(three["ci95"])
    assert (one["ci95"], one["seeds"]) == (9.0, 1)
    cells = beside_paper(accuracy_frame(by_seed, pd.DataFrame(), {}, seeds=3))
    assert "| maml | ours | 50.00 (1 of 3) |" in table(cells)


def test_training_curves_are_means_with_a_band() -> None:
    model = ["row"]
    keys = {"row": "maml", "update": 25, "split": "validation", "index": 0}
    lines = [
        {**keys, "quantity": quantity, "value": value}
        for quantity, values in (("accuracy", (60.0, 64.0)), ("condition_number", (10.0, 1000.0)))
        for value in values
    ]
    accuracy, kappa = logs_over_seeds(pd.DataFrame(lines), model).to_dict("records")
    width = 12.7062 * math.sqrt(8) / math.sqrt(2)
    assert (accuracy["value"], accuracy["low"]) == (62.0, pytest.approx(62 - width, abs=1e-3))
    assert kappa["value"] == pytest.approx(100.0)
    assert math.log10(kappa["high"]) == pytest.approx(2 + 12.7062 * math.sqrt(2) / math.sqrt(2), abs=1e-3)


def test_every_row_is_planned_once_a_seed_and_old_runs_are_found(tmp_path: Path) -> None:
    table3 = EXPERIMENTS["table3"]()
    one = plan([table3], ExperimentSettings(Scale("smoke"), GLYPHS), tmp_path)
    three = plan([table3], ExperimentSettings(Scale("smoke", Changes(seeds=(0, 1, 2))), GLYPHS), tmp_path)
    assert [each.job.config.seed for each in three] == [0, 0, 1, 1, 2, 2]
    assert [each.job.name for each in three[:2]] == [each.job.name for each in one]
    assert len({each.job.name for each in three}) == 6
    assert [run_name(each.job.config) for each in one] == [each.job.name for each in one]


def test_two_seeds_from_nothing_to_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"
    where = ("--runs", str(runs), "--out", str(tmp_path), "--name", "mine")
    only = ("--only", "none-5way", "variance-5way")
    assert main(["paper", "run", "figure3", *HERE, "--seeds", "0", "1", *only, *where]) == 0
    assert "2 seeds: 0, 1; intervals over trainings (Student t)" in capsys.readouterr().out
    folder = tmp_path / "figure3" / "glyphs-mine"
    frame = pd.read_csv(folder / "numbers.csv", comment="#")
    seeds = pd.read_csv(folder / "by-seed.csv", comment="#")
    ours = frame[frame["accuracy"].notna()]
    assert set(ours["seeds"]) == {2}
    result = collect_result(
        EXPERIMENTS["figure3"](),
        ExperimentSettings(Scale("smoke", Changes(seeds=(0, 1))), GLYPHS),
        runs,
    )
    row = ours[(ours["row"] == "cls") & (ours["step"] == 1)].iloc[0]
    both = seeds[(seeds["row"] == row["row"]) & (seeds["step"] == 1)]
    assert both["seed"].tolist() == [0, 1]
    # From the files of the runs themselves
    found = {}
    for path in runs.glob("glyphs-conv4-maml-*-5way-5shot-*/evaluations/test-2episodes-steps0to5.json"):
        evaluation = load_evaluation(path)
        config = evaluation.provenance["config"]
        found[config["conditioning"], config["seed"]] = 100 * evaluation.at(1).mean()
    conditioned, plain = ([found[kind, seed] for seed in (0, 1)] for kind in ("variance", "none"))
    assert row["accuracy"] == pytest.approx(np.mean(conditioned), abs=1e-3)
    assert row["ci95"] == pytest.approx(student_half_width(conditioned), abs=1e-3)
    assert row["gain"] == pytest.approx(np.mean(np.subtract(conditioned, plain)), abs=1e-3)
    assert row["gain_ci95"] == pytest.approx(student_half_width(np.subtract(conditioned, plain)), abs=1e-3)
    assert json.loads((folder / "result.json").read_text())["seeds"] == [0, 1]
    assert result.histories["low"].notna().any()
    # One of the two would be lost; a third only adds to them.
    assert main(["paper", "show", "figure3", *HERE[:2], *HERE[4:], *where]) == 2
    assert "would be lost; name them in --seeds" in capsys.readouterr().err
    assert main(["paper", "show", "figure3", *HERE[:2], *HERE[4:], "--seeds", "0", "1", "2", *where]) == 0
    assert "(2 of 3)" in (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("seeds", [(), (1, 1), (0, -1)])
def test_seeds_are_given_once_and_not_negative(seeds: tuple[int, ...]) -> None:
    with pytest.raises(FirststepError, match=r"`seeds` (.*: give each seed once|must be at least 0, not -1)"):
        Changes(seeds=seeds)
