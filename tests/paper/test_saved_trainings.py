"""Trainings of which only a result's folder is left: the numbers of all runs together, or a clear refusal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from firststep.cli import main

SMOKE = ("--scale", "smoke", "--data", "glyphs")


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two machines with a seed each, ``both`` with the runs of the two, and what ``both`` shows."""
    place = tmp_path_factory.mktemp("machines")
    for seed, machine in enumerate(("one", "two")):
        where = ("--runs", str(place / machine / "runs"), "--out", str(place / machine), "--name", "mine")
        assert (
            main(["paper", "run", "table3", *SMOKE, *where, "--seeds", str(seed), "--executor", "inline"])
            == 0
        )
        shutil.copytree(place / machine / "runs", place / "both" / "runs", dirs_exist_ok=True)
    assert show(place, "both", place / "both") == 0
    return place


def show(
    place: Path, runs: str, out: Path, *more: str, seeds: str = "0 1", experiment: str = "table3"
) -> int:
    where = ("--runs", str(place / runs / "runs"), "--out", str(out), "--name", "all")
    return main(["paper", "show", experiment, *SMOKE, *where, "--seeds", *seeds.split(), *more])


def result(out: Path) -> Path:
    return out / "table3" / "glyphs-all"


def saved(place: Path, machine: str) -> str:
    return str(place / machine / "table3" / "glyphs-mine")


@pytest.mark.parametrize(
    ("runs", "also"), [("one", ["two"]), ("two", ["one"]), ("none", ["one", "two"])], ids=str
)
def test_the_numbers_are_those_of_all_runs_together(
    machines: Path, tmp_path: Path, runs: str, also: list[str]
) -> None:
    assert show(machines, runs, tmp_path, "--also", *(saved(machines, one) for one in also)) == 0
    expected, found = result(machines / "both"), result(tmp_path)
    order = ["row", "step", "rate_multiplier"]
    for name, keys in (("numbers.csv", order), ("by-seed.csv", ["seed", *order])):
        read = (pd.read_csv(folder / name, comment="#") for folder in (expected, found))
        frames = [frame.sort_values(keys).reset_index(drop=True) for frame in read]
        # Numbers are stored with four digits.
        pd.testing.assert_frame_equal(*frames, atol=2e-4, rtol=1e-4)
    records = [json.loads((folder / "result.json").read_text()) for folder in (expected, found)]
    assert records[0]["table"] == records[1]["table"]
    assert [(part["folder"], part["seeds"]) for part in records[1]["joined"]] == [
        ("table3/glyphs-mine", [{"one": 0, "two": 1}[machine]]) for machine in also
    ]
    for name in ("data", "tests"):
        assert records[0]["provenance"][name] == records[1]["provenance"][name]
    page = (found / "README.md").read_text(encoding="utf-8")
    assert "- rows: 2 of 2 here have results\n- trainings: 4 of 4 have results\n" in page
    assert "nothing has been run" not in page


def test_a_joined_result_can_be_joined_again(machines: Path, tmp_path: Path) -> None:
    assert show(machines, "none", tmp_path, "--also", str(result(machines / "both"))) == 0
    frames = [pd.read_csv(result(out) / "by-seed.csv", comment="#") for out in (machines / "both", tmp_path)]
    pd.testing.assert_frame_equal(*frames)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"experiment": "table2"}, "holds a result of table2, not of table3"),
        (
            {"scale": {"name": "laptop", "overrides": [], "changes": {"updates": 7}}},
            "has another scale: laptop (changed from the paper's protocol: updates 7); here it is: smoke",
        ),
        (
            {"provenance": {"tests": [{"episodes": 600, "split": "test", "seed": 1, "queries": 2}]}},
            "has another test: 600 test episodes, seed 1, 2 queries a class; here it is: ",
        ),
        (
            {"provenance": {"data": [{"name": "glyphs", "fingerprint": "0"}]}},
            "has another data fingerprint: glyphs 0; here it is: ",
        ),
        ({"seeds": [0]}, "adds nothing: it has no training of seed 0, 1 that is new"),
        ({"seeds": [7]}, "adds nothing: it has no training of seed 0, 1 that is new"),
        (
            {"numbers": "no,numbers\n1,2\n"},
            "numbers.csv cannot be read as the numbers of a result: column row is missing",
        ),
    ],
    ids=lambda change: str(change)[:30],
)
def test_what_does_not_belong_is_refused(
    machines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict, told: str
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(saved(machines, "two"), folder)
    if "numbers" in change:
        (folder / "numbers.csv").write_text(change["numbers"])
    else:
        record = json.loads((folder / "result.json").read_text())
        made = {**record["provenance"], **change.get("provenance", {})}
        (folder / "result.json").write_text(json.dumps({**record, **change, "provenance": made}))
    assert show(machines, "one", tmp_path, "--also", str(folder)) == 2
    error = capsys.readouterr().err.replace("\n", " ")
    assert told in " ".join(error.split())
    assert not result(tmp_path).exists()


def test_a_folder_without_a_result_is_refused(
    machines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(machines, "one", tmp_path, "--also", str(tmp_path)) == 2
    assert "result.json" in capsys.readouterr().err
