"""Tutorials show the outputs of their code; test_snippets runs it, with that of all other pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from docsite.tutorials import IMAGES, blocks, tutorials, with_outputs


def name_of(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize("page", tutorials(), ids=name_of)
def test_what_prints_shows_its_output(page: Path) -> None:
    for code, output in blocks(page.read_text()):
        assert (output is not None) == ("print(" in code), code


def test_pictures_of_tutorials_are_there_and_shown() -> None:
    shown = {
        name for page in tutorials() for name in re.findall(r"images/tutorials/(\S+?)\)", page.read_text())
    }
    saved = {
        f"{page.stem.partition('-')[0]}-{name}"
        for page in tutorials()
        for name in re.findall(r'savefig\("(\S+?)"', page.read_text())
    }
    assert shown == saved == {path.name for path in IMAGES.iterdir()}


def test_outputs_are_written_below_their_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = "# A page\n\n```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n\nText.\n"
    written = with_outputs(page)
    assert list(blocks(written)) == [("x = 1\n", None), ("print(x + 1)\n", "2\n")]
    assert written.endswith("```\n\nText.\n")
    assert with_outputs(written) == written


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text.replace(",", ""))]


def test_the_first_tutorial_claims_what_its_code_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its code is run in full: the conditioning loss in a plain loop, a few seconds."""
    monkeypatch.chdir(tmp_path)
    page = next(page for page in tutorials() if page.name.startswith("1-"))
    committed = [output for _, output in blocks(page.read_text()) if output]
    with torch.random.fork_rng():
        made = [output for _, output in blocks(with_outputs(page.read_text())) if output]
    assert [re.sub(r"[\d.,]+", "#", text).split() for text in made] == [
        re.sub(r"[\d.,]+", "#", text).split() for text in committed
    ]
    for text in (*made, *committed):  # other processors round differently: what it claims, not the digits
        kappa, accuracy, conditioned_kappa, conditioned_accuracy = numbers(text)
        assert conditioned_kappa < kappa / 2
        assert conditioned_accuracy > accuracy + 20
