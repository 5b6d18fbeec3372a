"""The report counts what there is and names what is missing."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from firststep import FirststepError
from firststep.paper import EXPERIMENTS, budget_of, html_overview, read_results
from firststep.paper.comparison_table import PRINTED, build_table
from firststep.paper.describe import Budget
from firststep.paper.record import (
    CodeVersion,
    Column,
    DataVersion,
    Layout,
    Provenance,
    ResultRecord,
    RunTime,
    ScaleRecord,
    TableRow,
    TestEpisodes,
)

RECORD = ResultRecord(
    experiment="table3",
    title="Table 3",
    note="A note.",
    command=["firststep", "paper", "run", "table3", "--scale", "laptop"],
    scale=ScaleRecord(name="laptop", overrides=[], changes={"updates": 300, "filters": 16, "image_size": 32}),
    seeds=[0, 1, 2],
    table=Layout(
        rows=[TableRow(label="maml"), TableRow(label="conditioned", over="maml"), TableRow(label="deeper")],
        columns=[Column(0), Column(1), Column(50)],
        shows=["condition_number", "rank"],
    ),
    exists=True,
    provenance=Provenance(
        data=[DataVersion("cifar-fs", "0123"), DataVersion("glyphs", "4567")],
        tests=[TestEpisodes(episodes=600, split="test", seed=2_000_003, queries=5)],
        code=[CodeVersion("0.1.0", "0123abc")],
        torch=["2.13.0"],
        hardware=["a machine"],
        runs=[RunTime(name="one", seconds=4000.0), RunTime(name="two", seconds=5000.0)],
        training_seconds=9000.0,
        config={"image_size": 32, "meta_batch": 2, "outer_rate": 0.003},
        varying={"rate": [0.1, 0.05, None]},
    ),
)
NUMBERS = """\
row,backbone,step,rate_multiplier,accuracy,ci95,condition_number,rank,gain_over,gain,gain_ci95,seeds,gain_seeds,\
paper_accuracy,paper_ci95,paper_gain,paper_gain_ci95,difference,difference_ci95
maml,conv4,0,1.0,20.0,1.0,100.0,25.0,,,,3,0,,,,,,
maml,conv4,1,1.0,50.0,1.0,80.0,25.0,,,,2,0,20.04,0.02,,,29.96,1.0
maml,,50,1.0,,,,,,,,,,77.0,0.7,,,,
conditioned,resnet10,0,1.0,20.0,1.0,30.0,25.0,maml,0.0,0.5,3,3,,,,,,
conditioned,resnet10,1,1.0,53.0,1.0,20.0,25.0,maml,3.0,2.0,3,3,61.78,0.75,41.74,0.75,-8.78,1.25
conditioned,resnet10,50,1.0,78.0,1.0,20.0,25.0,,,,3,0,79.0,0.7,2.0,0.99,-1.0,1.22
deeper,,1,1.0,,,,,,,,,,75.0,0.7,,,,
deeper,,50,1.0,,,,,,,,,,80.0,0.6,,,,
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "table3" / "glyphs-mine"
    place.mkdir(parents=True)
    RECORD.save(place)
    (place / "numbers.csv").write_text(f"# command: any\n{NUMBERS}", encoding="utf-8")
    return tmp_path


def test_a_record_is_read_as_it_was_written(folder: Path) -> None:
    (saved,) = read_results(folder)
    assert saved.record == RECORD
    assert saved.cells["accuracy"].sum() == 221.0


def test_tables_mark_gains_and_missing_trainings(folder: Path) -> None:
    (saved,) = read_results(folder)
    layout = saved.record.table
    html = build_table(layout, saved.cells, 3, only=["maml", "conditioned"], highlight=True).to_html()
    assert "<strong>+3.00 ± 2.00</strong>" in html
    assert "<strong>+0.00" not in html
    assert "50.00 ± 1.00 (2 of 3)" in html
    assert "deeper" not in html
    paper = build_table(layout, saved.cells, lines=PRINTED, only=["deeper"])
    assert [[cell.text for cell in row] for row in paper.rows] == [
        ["deeper", "paper", "–", "75.00 ± 0.70", "80.00 ± 0.60", "", ""]
    ]


def test_the_budget_of_a_result(folder: Path) -> None:
    (saved,) = read_results(folder)
    budget = budget_of(saved.record, saved.cells)
    assert (budget.data, budget.networks) == ("cifar-fs, glyphs", "Conv4, ResNet10, 16 filters")
    assert (budget.images, budget.training, budget.rate) == ("32 px", "300 updates × 2 tasks", "α 0.05, 0.1")
    assert (budget.test, budget.time) == ("600 test episodes", "2.5 h for 2 runs")
    assert budget_of(dataclasses.replace(RECORD, provenance=None), saved.cells) == Budget()


def test_the_page_has_every_experiment_and_says_what_is_missing(folder: Path) -> None:
    page = html_overview(folder)
    lines = [line for line in page.splitlines() if "<tr><td" in line and 'href="#' in line]
    found = {texts[0]: texts for texts in (re.findall(r">([^<>]*)</(?:a|td)>", line) for line in lines)}
    assert found.pop("table3") == [
        *("table3", "mini-imagenet", "cifar-fs, glyphs", "glyphs-mine", "Conv4, ResNet10, 16 filters"),
        *("32 px", "300 updates × 2 tasks", "3 (0, 1, 2)", "600 test episodes", "2.5 h for 2 runs", "2 of 3"),
    ]
    assert all(texts[-1] == "not run here" for texts in found.values())
    assert {*found, "table3"} == set(EXPERIMENTS)
    assert all(f'id="{name}"' in page for name in EXPERIMENTS)
    assert "<b>Not run here (2)</b>: deeper; maml (step 50)." in page
    assert "61.78 ± 0.75" in page  # the paper's, of figures that were not run
    assert 'src="http' not in page


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seeds": []}, "result.json: seeds: expected at least one seed"),
        ({"seeds": ["0"]}, r"result.json: seeds\[0\]: expected int, got str"),
        ({"table": {"rows": [], "columns": [{"step": 0.5}], "shows": []}}, "expected int, got float"),
        (
            {"format": "firststep-paper-result-1"},
            "written by an earlier version: remove it, and run `firststep paper show` again",
        ),
    ],
    ids=str,
)
def test_a_damaged_record_is_refused(folder: Path, change: dict[str, Any], told: str) -> None:
    path = folder / "table3" / "glyphs-mine" / "result.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**record, **change}), encoding="utf-8")
    with pytest.raises(FirststepError, match=told):
        read_results(folder)


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ("", "cannot be read as the numbers of a result: No columns"),
        ("row,step\nmaml,1\n", "column rate_multiplier is missing"),
        (NUMBERS.replace("maml,conv4,1,", "maml,conv4,one,"), "Unable to parse string"),
        (NUMBERS.replace("maml,conv4,1,", "maml,conv4,1.5,"), "cannot safely cast"),
    ],
    ids=["empty", "column", "word", "fraction"],
)
def test_damaged_numbers_are_refused(folder: Path, numbers: str, told: str) -> None:
    (folder / "table3" / "glyphs-mine" / "numbers.csv").write_text(numbers, encoding="utf-8")
    with pytest.raises(FirststepError, match=told):
        read_results(folder)
