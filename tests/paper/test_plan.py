"""Experiments, scales and data become a plan in which every run is there once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firststep import FirststepError
from firststep.paper.changes import SCALES, Changes
from firststep.paper.experiment import WITHIN, Experiment, protocol
from firststep.paper.experiments import EXPERIMENTS, experiment
from firststep.paper.plan import plan, run_name
from firststep.paper.scale import Scale
from firststep.paper.setting import Setting, parse_data
from firststep.rules import METHODS
from runs import TINY

GLYPHS = {"glyphs": None}
PLACES = {name: Path(name) for name in ("mini-imagenet", "tiered-imagenet", "cub", "cifar-fs", "fc100")}


def every() -> list[Experiment]:
    return [experiment(name) for name in EXPERIMENTS]


def test_run_names_say_what_is_computed_not_where() -> None:
    same = [replace(TINY, cache=Path("elsewhere")), replace(TINY, threads=3), replace(TINY, device="cpu")]
    assert {run_name(config) for config in same} == {run_name(TINY)}
    assert run_name(TINY) != run_name(replace(TINY, seed=1))


def test_a_run_that_several_experiments_need_is_planned_once(tmp_path: Path) -> None:
    planned = plan(every(), Setting(Scale("paper"), PLACES | GLYPHS), tmp_path)
    names = [each.job.name for each in planned]
    assert len(set(names)) == len(names)
    conv6 = run_name(
        replace(protocol("mini-imagenet", "conv6", conditioned=True), data_path=Path("mini-imagenet"))
    )
    shared = next(each for each in planned if each.job.name == conv6)
    assert {"table3", "table4", "loss-ablation", "ways-and-shots", "preconditioners", "figure2"} <= set(
        shared.experiments
    )
    tests = {test.name for test in shared.job.tests}
    assert {"test-600episodes-steps0to5", "test-600episodes-steps10-25-50-100"} <= tests
    assert {"val-100episodes-steps0to5", "test-600episodes-steps1-x3"} <= tests
    assert shared.state == "to do"


def test_the_paper_scale_is_the_protocol() -> None:
    for row in Setting(Scale("paper"), PLACES).rows(experiment("table4")):
        c = row.config
        assert (c.total_updates, c.queries, c.meta_batch, c.steps, c.rate, c.gamma) == (
            60_000 if c.shots == 1 else 40_000, 16, 4, 5, None, 1.0,
        )  # fmt: skip
        assert c.image_size == (224 if c.backbone.startswith("resnet") else 84)
        assert (c.validate_every, c.validation_episodes, c.outer_rate, c.augment) == (25, 100, 1e-3, False)
        assert {test.options["episodes"] for test in row.tests} == {600}


@pytest.mark.parametrize("name", SCALES)
def test_a_scale_changes_only_what_it_says(name: str) -> None:
    scale = Scale(name)
    stated = set(scale.changes.given()) | ({"rate"} if scale.changes.rate_times_features else set())
    for each in every():
        for row in each.rows:
            before, after = row.config.to_json(), scale.config(row.config).to_json()
            assert {field for field, value in after.items() if before[field] != value} <= stated
    assert all(str(value) in scale.describe() for value in scale.changes.given().values())


def test_the_inner_rate_follows_the_number_of_features() -> None:
    laptop = Scale("laptop")
    rates = {
        filters: laptop.config(protocol("glyphs", "conv4", conditioned=True, filters=filters)).rate
        for filters in (32, 64, 128)
    }
    assert rates == {32: 0.2, 64: 0.1, 128: 0.05}
    wider = Scale("laptop", Changes(filters=32))
    assert wider.config(protocol("glyphs", "conv4", conditioned=True)).rate == 0.05
    asked = Scale("laptop", Changes(filters=32, rate=0.1))
    assert asked.config(protocol("glyphs", "conv4", conditioned=True)).rate == 0.1
    assert "rate 0.1" in asked.describe()
    assert asked.slug == "laptop-filters32-rate0.1"
    many = Changes(filters=32, rate=0.1, updates=2000, episodes=600, validate_every=100)
    other = Changes(filters=32, rate=0.1, updates=3000, episodes=600, validate_every=100)
    assert len(Scale("laptop", many).slug) < 40
    assert Scale("laptop", many).slug != Scale("laptop", other).slug
    modgrad = protocol("glyphs", "conv4", conditioned=False, method="modgrad")
    assert laptop.config(modgrad).rate is None  # its authors' own


def test_another_dataset_stands_in_and_it_is_said() -> None:
    setting = Setting(Scale("laptop"), GLYPHS)
    table2 = experiment("table2")
    assert {row.config.data for row in setting.rows(table2)} == {"glyphs"}
    assert "glyphs in place of cub" in setting.replaced(table2)
    own = Setting(Scale("laptop"), {"cifar-fs": Path("a"), "cub": Path("b")})
    assert {(row.config.data, row.config.data_path) for row in own.rows(table2)} == {("cub", Path("b"))}
    assert own.replaced(table2) == ""


def test_datasets_that_are_compared_are_never_swapped() -> None:
    table4 = experiment("table4")
    setting = Setting(Scale("laptop"), {"cifar-fs": Path("a"), **GLYPHS})
    rows = setting.rows(table4)
    assert {row.config.data for row in rows} == {"cifar-fs", "glyphs"}
    assert len(rows) == 32
    assert "glyphs conv4 5-shot conditioned" in {row.label for row in rows}
    assert "mini-imagenet" in setting.replaced(table4)


def test_what_is_asked_for_in_vain_is_named(tmp_path: Path) -> None:
    with pytest.raises(FirststepError, match="table2 is about cub: give --data cub=PATH"):
        plan([experiment("table2")], Setting(Scale("paper"), {}), tmp_path)
    with pytest.raises(FirststepError, match="--only resnet: no row or run"):
        plan([experiment("table2")], Setting(Scale("smoke"), GLYPHS), tmp_path, ["resnet"])
    with pytest.raises(FirststepError, match="did you mean table2"):
        experiment("tabel2")
    with pytest.raises(FirststepError, match="did you mean cifar-fs"):
        parse_data(("cifar=x",), "laptop")
    with pytest.raises(FirststepError, match="--data cub=PATH says where"):
        parse_data(("cub",), "laptop")
    with pytest.raises(FirststepError, match="takes no path"):
        parse_data(("glyphs=x",), "laptop")


def test_only_the_rows_that_were_asked_for(tmp_path: Path) -> None:
    planned = plan([experiment("figure1")], Setting(Scale("smoke"), GLYPHS), tmp_path, ["conv4"])
    assert {each.job.config.backbone for each in planned} == {"conv4"}


def test_longer_tests_than_a_scale_allows_are_left_out() -> None:
    table4 = experiment("table4")
    for row in Setting(Scale("smoke"), GLYPHS).rows(table4):
        assert [test.options["steps"] for test in row.tests] == [WITHIN, (10,)]


def test_rivals_cover_every_method_with_and_without_conditioning() -> None:
    rows = Setting(Scale("laptop"), {"cifar-fs": Path("x")}).rows(experiment("rivals-glyphs"))
    assert {row.label for row in rows} == {n for m in METHODS for n in (m, f"{m} + conditioning")}
    assert {row.config.data for row in rows} == {"glyphs"}
