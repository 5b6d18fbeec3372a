"""Names of runs: no change of the code may change them, since finished runs are found by them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from firststep.cli.sweep import default_folder
from firststep.errors import FirststepError
from firststep.paper.plan import run_name
from firststep.training import TrainConfig, open_run, recipe


def digest(config: TrainConfig) -> str:
    return hashlib.sha256(json.dumps(config.identity(), sort_keys=True).encode()).hexdigest()[:16]


LATER = TrainConfig(ema=0.9, head="zero", init="x", subset="emb")


def test_the_names_of_published_runs_stay() -> None:
    """Stored when results were first published; never update them."""
    found = {name: digest(recipe(name)) for name in ("paper", "glyphs")} | {"later": digest(LATER)}
    assert found == {
        "paper": "c9477dec1c7da23a",
        "glyphs": "d27b16096fae633c",
        "later": "0d625f06ed002a36",
    }
    assert run_name(LATER) == "glyphs-conv4-maml-zero-head-variance-emb-5way-5shot-4009c1347e"
    assert run_name(TrainConfig()) == "glyphs-conv4-maml-variance-5way-5shot-9d494b9ce4"
    assert default_folder(TrainConfig(), ("seed",)) == Path("runs/sweep-glyphs-5way-5shot-f2719614")


def test_a_new_field_renames_no_run() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Longer(TrainConfig):
        brand_new: int = 3

    assert digest(Longer()) == digest(TrainConfig())
    assert digest(Longer(brand_new=4)) != digest(TrainConfig())


def test_a_removed_field_is_read_with_its_default_only() -> None:
    stored = json.loads(open_run("builtin:glyphs").record_path.read_text())["config"]
    assert stored["streams"] == 1
    config = TrainConfig.from_json(stored)
    assert "streams" not in config.to_json()
    assert "streams" not in {field.name for field in dataclasses.fields(config)}
    for field, value in (("streams", 2), ("speed", None), ("speed", [1])):
        with pytest.raises(FirststepError, match=f"this version has no {field} in a configuration"):
            TrainConfig.from_json({**stored, field: value})


def test_labels_name_the_head_and_the_measured_subset() -> None:
    plain, shared = TrainConfig(conditioning="none", subset="emb"), TrainConfig(head="shared", subset="emb")
    assert (plain.method_label, plain.method_slug, plain.measured_subset) == ("maml", "maml", "cls")
    assert (shared.method_label, shared.method_slug) == ("maml, shared head", "maml-shared-head")
    assert shared.measured_subset == "emb"
    assert shared.describe() == "maml, shared head + conditioning emb variance"
