"""Experiments, scales and data become a plan in which every run is there once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from firststep import FirststepError
from firststep.methods import build_method
from firststep.paper import (
    CHANGEABLE,
    EXPERIMENTS,
    SCALES,
    Changes,
    Experiment,
    ExperimentSettings,
    Scale,
    parse_data,
    plan,
    protocol,
)
from firststep.paper.experiment import WITHIN
from firststep.paper.experiments.further import RIVALS
from firststep.paper.plan import run_name
from runs import TINY

GLYPHS = {"glyphs": None}
PLACES = {name: Path(name) for name in ("mini-imagenet", "tiered-imagenet", "cub", "cifar-fs", "fc100")}


def every() -> list[Experiment]:
    return [EXPERIMENTS[name]() for name in EXPERIMENTS]


def test_run_names_say_what_is_computed_not_where() -> None:
    same = [replace(TINY, cache=Path("elsewhere")), replace(TINY, threads=3), replace(TINY, device="cpu")]
    assert {run_name(config) for config in same} == {run_name(TINY)}
    assert run_name(TINY) != run_name(replace(TINY, seed=1))


def test_a_run_that_several_experiments_need_is_planned_once(tmp_path: Path) -> None:
    planned = plan(every(), ExperimentSettings(Scale("paper"), PLACES | GLYPHS), tmp_path)
    names = [each.job.name for each in planned]
    assert len(set(names)) == len(names)
    conv6 = run_name(
        replace(protocol("mini-imagenet", "conv6", conditioned=True), data_path=Path("mini-imagenet"))
    )
    shared = next(each for each in planned if each.job.name == conv6)
    assert {"table3", "table4", "loss-ablation", "ways-and-shots", "preconditioners", "figure4"} <= set(
        shared.experiments
    )
    tests = {test.name for test in shared.job.evaluations}
    assert {"test-600episodes-steps0to5", "test-600episodes-steps10-25-50-100"} <= tests
    assert {"val-100episodes-steps0to5", "test-600episodes-steps1-x3"} <= tests
    assert shared.state == "to do"


def test_the_paper_scale_is_the_protocol() -> None:
    for row in ExperimentSettings(Scale("paper"), PLACES).rows(EXPERIMENTS["table4"]()):
        c = row.config
        assert (c.total_updates, c.queries, c.meta_batch, c.steps, c.rate, c.gamma) == (
            60_000 if c.shots == 1 else 40_000, 16, 4, 5, None, 1.0,
        )  # fmt: skip
        assert c.image_size == (224 if c.backbone.startswith("resnet") else 84)
        assert (c.validate_every, c.validation_episodes, c.outer_rate, c.augment) == (25, 100, 1e-3, False)
        assert {test.settings.episodes for test in row.tests} == {600}


@pytest.mark.parametrize("name", SCALES)
def test_a_scale_changes_only_what_it_says(name: str) -> None:
    scale = Scale(name)
    stated = set(scale.changes) | ({"rate"} if "rate_times_features" in scale.changes else set())
    for each in every():
        for row in each.rows:
            before, after = row.config.to_json(), scale.config(row.config).to_json()
            assert {field for field, value in after.items() if before[field] != value} <= stated
    assert all(str(value) in scale.describe() for value in scale.changes.values())


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
    modgrad = protocol("glyphs", "conv4", conditioned=False, method="modgrad")
    assert laptop.config(modgrad).rate is None  # its authors' own


def test_folders_of_results_are_readable() -> None:
    table2, table4 = EXPERIMENTS["table2"](), EXPERIMENTS["table4"]()
    wider = Scale("laptop", Changes(filters=32, rate=0.1))
    places = {"cifar-fs": Path("a"), **GLYPHS}
    folder = ExperimentSettings(wider, places).folder(table4)
    assert folder == Path("table4/cifar-fs-glyphs-laptop-filters-32-rate-0.1")
    # An experiment on one dataset is named by the one it used.
    assert ExperimentSettings(wider, places, name="wide").folder(table2) == Path("table2/cifar-fs-wide")
    assert ExperimentSettings(Scale("paper"), {}).folder(table2) == Path("table2/paper")
    with pytest.raises(FirststepError, match="`name=a/b`"):
        ExperimentSettings(wider, GLYPHS, name="a/b")
    every_change = Changes(**{name: 123456789 for name in CHANGEABLE if name != "seeds"})
    with pytest.raises(FirststepError, match="give a short one with `name`"):
        ExperimentSettings(Scale("laptop", every_change), GLYPHS)
    assert ExperimentSettings(Scale("laptop", every_change), GLYPHS, name="all").folder(table2)


def test_datasets_that_are_compared_are_never_swapped() -> None:
    table4 = EXPERIMENTS["table4"]()
    settings = ExperimentSettings(Scale("laptop"), {"cifar-fs": Path("a"), **GLYPHS})
    rows = settings.rows(table4)
    assert {row.config.data for row in rows} == {"cifar-fs", "glyphs"}
    assert len(rows) == 32
    assert "glyphs conv4 5-shot conditioned" in {row.label for row in rows}
    assert "mini-imagenet" in settings.substitution(table4)


def test_what_is_asked_for_in_vain_is_named(tmp_path: Path) -> None:
    with pytest.raises(FirststepError, match="table2 is about cub: give `data` cub=PATH"):
        plan([EXPERIMENTS["table2"]()], ExperimentSettings(Scale("paper"), {}), tmp_path)
    with pytest.raises(FirststepError, match="`only` resnet: no row or run"):
        plan([EXPERIMENTS["table2"]()], ExperimentSettings(Scale("smoke"), GLYPHS), tmp_path, ["resnet"])
    with pytest.raises(ValueError, match="did you mean table2"):
        EXPERIMENTS["tabel2"]()
    with pytest.raises(FirststepError, match="did you mean cifar-fs"):
        parse_data(("cifar=x",), "laptop")
    with pytest.raises(FirststepError, match="`data` cub=PATH says where"):
        parse_data(("cub",), "laptop")
    with pytest.raises(FirststepError, match="takes no path"):
        parse_data(("glyphs=x",), "laptop")


def test_longer_tests_than_a_scale_allows_are_left_out() -> None:
    table4 = EXPERIMENTS["table4"]()
    for row in ExperimentSettings(Scale("smoke"), GLYPHS).rows(table4):
        assert [test.settings.steps for test in row.tests] == [WITHIN, (10,)]


def test_rivals_are_every_method_plain_conditioned_and_with_a_shared_head() -> None:
    settings = ExperimentSettings(Scale("laptop"), {"cifar-fs": Path("x"), **GLYPHS})
    rows = settings.rows(EXPERIMENTS["rivals"]())
    plain = {name for method in RIVALS for name in (method, f"{method} + conditioning")}
    shared = {f"{method}, shared head" for method in RIVALS if method not in ("boil", "modgrad")}
    assert {row.label for row in rows} == plain | shared
    assert {(row.config.data, row.config.shots) for row in rows} == {("cifar-fs", 5)}
    assert all(row.config.head == ("shared" if row.label in shared else "per-class") for row in rows)


@pytest.mark.parametrize("changes", [Changes(), Changes(rate=0.3), Changes(rate_times_features=3.0)])
def test_heads_are_compared_over_ten_steps_and_gauss_newton_takes_the_whole_one(changes: Changes) -> None:
    rows = ExperimentSettings(Scale("laptop", changes), {"cifar-fs": Path("x")}).rows(EXPERIMENTS["heads"]())
    assert [row.label for row in rows] == [
        "per-class", "per-class + conditioning", "shared", "shared + conditioning", "zero",
        "zero + conditioning", "per-class, gauss-newton", "shared, gauss-newton",
    ]  # fmt: skip
    for row in rows:
        (test,) = row.tests
        assert test.settings.steps == tuple(range(11))
        newton = row.config.method == "gauss-newton"
        assert (row.config.rate is None) == newton  # its own, 1
        assert newton == ("gauss-newton" in row.label)
    assert build_method("gauss-newton").rule.update.keywords["rate"] == 1.0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "dataset", "backbones"),
    [
        ("figure1", "cub", {"conv4", "conv6", "resnet10", "resnet18"}),
        ("figure2", "tiered-imagenet", {"conv4", "conv6"}),
        ("figure3", "cub", {"conv4"}),
        ("supplement-curves", "tiered-imagenet", {"conv4", "conv6"}),
        ("supplement-subsets", "mini-imagenet", {"conv4"}),
    ],
)
def test_figures_are_about_what_the_papers_captions_say(name: str, dataset: str, backbones: set[str]) -> None:
    experiment = EXPERIMENTS[name]()
    assert {(row.config.data, row.config.ways, row.config.shots) for row in experiment.rows} == {
        (dataset, 5, 5)
    }
    assert {row.config.backbone for row in experiment.rows} == backbones
    assert set(experiment.paper.get("dataset", [])) <= {dataset}
    labels = {row.label for row in experiment.rows}
    assert set(experiment.paper.get("row", [])) <= labels
    if name == "supplement-subsets":
        assert len(labels) == 8
        assert all(row.config.all_every for row in experiment.rows)
    else:
        assert len(experiment.paper)
    stood_in = ExperimentSettings(Scale("laptop"), GLYPHS).substitution(experiment)
    assert f"Run on glyphs in place of {dataset}" in stood_in


def test_another_dataset_stands_in_and_it_is_said() -> None:
    settings = ExperimentSettings(Scale("laptop"), GLYPHS)
    table2, heads = EXPERIMENTS["table2"](), EXPERIMENTS["heads"]()
    assert {row.config.data for row in (*settings.rows(table2), *settings.rows(heads))} == {"glyphs"}
    assert "glyphs in place of cub, which the paper's numbers are about" in settings.substitution(table2)
    assert "glyphs in place of cifar-fs, which the experiment is about." in settings.substitution(heads)
    own = ExperimentSettings(Scale("laptop"), {"cifar-fs": Path("a"), "cub": Path("b")})
    assert {(row.config.data, row.config.data_path) for row in own.rows(table2)} == {("cub", Path("b"))}
    assert own.substitution(table2) == ""


def test_changes_reach_the_runs_and_the_outputs_and_paths_stay_private() -> None:
    scale = Scale("smoke", Changes(ema=0.9, augment=True, gamma=0.5, init="/home/me/pretrained", patience=3))
    plain, conditioned = (
        scale.config(protocol("cub", "conv4", conditioned=with_loss)) for with_loss in (False, True)
    )
    assert (conditioned.augment, conditioned.gamma, conditioned.ema) == (True, 0.5, 0.9)
    assert (conditioned.init, conditioned.patience) == ("/home/me/pretrained", 3)
    # γ does nothing without the loss: the run that is there is found.
    assert (plain.augment, plain.gamma) == (True, 1.0)
    words = ["--augment", "--gamma", "0.5", "--init", "PATH", "--ema", "0.9", "--patience", "3"]
    assert sorted(scale.flags()) == sorted(["--scale", "smoke", *words])
    assert ", augment True, " in scale.describe()
    assert "/home" not in scale.describe() + scale.words + " ".join(scale.flags())
    assert Scale("smoke", Changes(compile=True)).flags() == ["--scale", "smoke", "--compile", "True"]
    same = Scale("laptop", Changes(updates=7, filters=32)), Scale("laptop", Changes(filters=32, updates=7))
    assert {each.words for each in same} == {"laptop-filters-32-updates-7"}


def test_a_change_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(FirststepError, match="did you mean updates"):
        Changes(update=3)
    with pytest.raises(FirststepError, match="shots"):
        Changes(shots=1)
    with pytest.raises(FirststepError, match="`patience` must be at least 1"):
        Scale("paper", Changes(patience=0)).config(protocol("cub", "conv4", conditioned=True))
    with pytest.raises(FirststepError, match="`head=zero`: the rows of heads have heads of their own"):
        ExperimentSettings(Scale("laptop", Changes(head="zero")), GLYPHS).rows(EXPERIMENTS["heads"]())
