"""The report counts what there is and names what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firststep import FirststepError
from firststep.paper import EXPERIMENTS, html_overview, markdown_summary, read_results
from firststep.paper.budget import read_budget
from firststep.paper.coverage import read_coverage

COLUMNS = ["row", "", "step 0", "step 1", "step 50", "κ", "rank"]
LINES = [
    ["maml", "ours", "20.00 ± 1.00", "50.00 ± 1.00 (2 of 3)", "–", "100", "25"],
    ["", "paper", "–", "20.04 ± 0.02", "77.00 ± 0.70", "", ""],
    ["conditioned", "ours", "20.00 ± 1.00", "53.00 ± 1.00", "78.00 ± 1.00", "30", "25"],
    ["", "paper", "–", "61.78 ± 0.75", "79.00 ± 0.70", "", ""],
    ["  over maml", "gain, ours", "+0.00 ± 0.50", "+3.00 ± 2.00", "", "", ""],
    ["", "gain, paper", "", "+41.74 ± 0.75", "+2.00 ± 0.99", "", ""],
    ["deeper", "ours", "–", "–", "–", "", ""],
    ["", "paper", "–", "75.00 ± 0.70", "80.00 ± 0.60", "", ""],
]
FACTS = {
    "command": "firststep paper run table3 --scale laptop",
    "scale": "laptop (changed from the paper's protocol: updates 300, filters 16, image size 32)",
    "data fingerprint": "cifar-fs 0123; glyphs 4567",
    "test": "600 test episodes, seed 2000003, 5 queries a class",
    "training time": "9000 s in all for 2 of 2 runs: cifar-fs-conv4-maml-none-5way-5shot-1 4000 s; "
    "glyphs-resnet10-maml-none-5way-5shot-2 5000 s",
    "settings": "image_size=32, meta_batch=2, outer_rate=0.003, rate by the number of features: 0.05, 0.1",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A result as an earlier version wrote it, which did not list its seeds."""
    place = tmp_path / "table3" / "glyphs-mine"
    place.mkdir(parents=True)
    record = {
        "format": "firststep-paper-result-1", "experiment": "table3", "title": "Table 3", "note": "A note.",
        "exists": True, "facts": FACTS, "table": {"columns": COLUMNS, "lines": LINES},
    }  # fmt: skip
    (place / "result.json").write_text(json.dumps(record), encoding="utf-8")
    return tmp_path


def test_cells_are_counted_and_gaps_are_named(folder: Path) -> None:
    (result,) = read_results(folder)
    coverage = read_coverage(result.table)
    assert [row.label for row in coverage.rows] == ["maml", "conditioned", "deeper"]
    assert [row.label for row in coverage.run] == ["maml", "conditioned"]
    assert (coverage.ours, coverage.incomplete) == (5, 1)
    assert (coverage.beside, coverage.printed) == (3, 6)
    assert coverage.missing() == ["deeper", "maml (step 50)"]
    html = coverage.table(coverage.run).to_html()
    assert "<strong>+3.00 ± 2.00</strong>" in html
    assert "<strong>+0.00" not in html
    assert "deeper" not in html
    paper = coverage.table([row.without_ours() for row in coverage.not_run])
    assert [[cell.text for cell in row] for row in paper.rows] == [
        ["deeper", "paper", "75.00 ± 0.70", "80.00 ± 0.60"]
    ]


def test_the_budget_is_read_from_what_a_result_says() -> None:
    budget = read_budget(FACTS)
    assert (budget.data, budget.networks) == ("cifar-fs, glyphs", "Conv4, ResNet10, 16 filters")
    assert (budget.images, budget.training, budget.rate) == ("32 px", "300 updates × 2 tasks", "α 0.05, 0.1")
    assert (budget.test, budget.time) == ("600 test episodes", "2.5 h for 2 runs")
    assert str(read_budget({})) == ""


def test_the_page_has_every_experiment_and_says_what_is_missing(folder: Path) -> None:
    page, summary = html_overview(folder), markdown_summary(folder)
    line = next(line for line in summary.splitlines() if line.startswith("| table3 |"))
    assert line == (
        "| table3 | mini-imagenet | cifar-fs, glyphs | glyphs-mine | Conv4, ResNet10, 16 filters, 32 px "
        "| 300 × 2 | 1 (0), 1 cells incomplete | 600 test episodes | 2.5 h for 2 runs "
        "| 2 of 3 | 5 | 3 of 14 |"
    )
    assert "- table3-glyphs-mine, not run here: deeper; maml (step 50)." in summary
    assert "<b>Not run here (2)</b>: deeper; maml (step 50)." in page
    for name in EXPERIMENTS:
        assert f'id="{name}"' in page
        if name != "table3":
            assert f"| {name} |" in summary
            assert "not run here" in next(s for s in summary.splitlines() if s.startswith(f"| {name} |"))
    assert "61.78 ± 0.75" in page  # the paper's, of figures that were not run
    assert 'src="http' not in page


def test_a_table_without_columns_is_refused(folder: Path) -> None:
    path = folder / "table3" / "glyphs-mine" / "result.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["table"] = {"columns": ["row"], "lines": [["maml"]]}
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(FirststepError, match=r"table\.columns have less than the two"):
        read_results(folder)
