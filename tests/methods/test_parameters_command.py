"""``firststep parameters``: our counts agree with every count that the paper gives."""

from __future__ import annotations

from typing import Any

import pytest

from firststep import BACKBONES, METHODS, build_backbone, build_method
from firststep.cli.parameters import parameters
from firststep.errors import FirststepError
from firststep.methods import count_parameters
from firststep.paper import published

PRINTED = list(published("preconditioners").itertuples())


@pytest.mark.parametrize("row", PRINTED, ids=lambda row: f"{row.method}-{row.filters}")
def test_every_published_count(row: Any) -> None:
    method = build_method("maml" if row.method == "conditioned" else row.method)
    counts = count_parameters(method, build_backbone(row.backbone, filters=row.filters))
    assert counts.total == row.total_parameters
    assert counts.backbone == row.backbone_parameters


def lines(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    table = capsys.readouterr().out.splitlines()
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in table]


def test_the_table_has_every_method_and_the_paper_s_counts(capsys: pytest.CaptureFixture[str]) -> None:
    parameters(backbone=("conv4",), filters=(32, 128))
    rows = lines(capsys)
    assert {row[1] for row in rows if len(row) == 6} >= {*METHODS, "conditioned"}
    assert ["", "meta-sgd", "32,901", "32,901", "65,802", "65,802"] in rows
    assert ["", "conditioned", "32,901", "0", "32,901", "32,901"] in rows
    assert ["", "meta-curvature", "463,365", "10,355,563", "10,818,928", "10,818,928"] in rows
    assert ["", "gap", "463,365", "411", "463,776", ""] in rows


def test_no_paper_s_counts_for_other_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    parameters(backbone=("conv4",), filters=(32,), ways=3)
    assert all(row[-1] == "" for row in lines(capsys) if len(row) == 6 and row[1] in METHODS)


def test_all_backbones_and_where_a_method_is_not_defined(capsys: pytest.CaptureFixture[str]) -> None:
    parameters(filters=(32,))
    rows = lines(capsys)
    assert {row[0].removesuffix("-32") for row in rows if len(row) == 6} >= set(BACKBONES)
    assert ["", "warp-maml", "", "–", "", ""] in rows


def test_bad_arguments_are_named() -> None:
    with pytest.raises(FirststepError, match="unknown backbone 'conv5'; did you mean conv"):
        parameters(backbone=("conv5",))
    with pytest.raises(FirststepError, match="image_size must be at least 16"):
        parameters(backbone=("conv4",), image_size=8)
    with pytest.raises(FirststepError, match="steps must be at least 1"):
        parameters(backbone=("conv4",), steps=0)
