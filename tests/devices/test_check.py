"""``firststep check``: a table, a report as JSON, and exit status 1 where something is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from firststep.cli import main
from second_device import broken

Captured = pytest.CaptureFixture[str]


def test_a_machine_that_computes_rightly(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "check.json"
    assert main(["check", "--no-compile", "--device", "cpu", "--json", str(file)]) == 0
    report = json.loads(file.read_text())
    assert report["passed"] is True
    assert report["device"] == "cpu"
    assert {"torch", "machine"} <= report["machine"].keys()
    names = [check["name"] for check in report["checks"]]
    assert {"meta-gradient, stepwise, float64", "outputs, bfloat16"} <= set(names)
    assert "one update, twice" in names
    assert report["seconds"].keys() == {"plain autograd", "stepwise"}
    out = capsys.readouterr().out
    assert "nothing is wrong" in out
    assert all(name in out for name in names)


def test_a_broken_kernel_is_named_and_gives_status_1(capsys: Captured) -> None:
    with broken(torch.ops.aten.convolution_backward.default):
        assert main(["check", "--no-compile", "--device", "standin"]) == 1
    assert "WRONG: meta-gradient, stepwise, float64" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--device", "gpu"], "gpu is not a device; here are "),
        (["--device", "mps"], "device mps: PyTorch sees none here; there are cpu"),
        (["--json", "report.txt"], "report.txt"),
    ],
)
def test_bad_input_gives_one_line_and_status_2(flags: list[str], message: str, capsys: Captured) -> None:
    assert main(["check", *flags]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1
