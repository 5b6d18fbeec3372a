"""Numbers in the text are those of results/."""

from __future__ import annotations

from pathlib import Path

import pytest

from docsite.figures import ELSEWHERE, Stated, stated, without_source
from docsite.paths import ROOT
from helpers.pages import PAGES

TEXTS = [*PAGES, ROOT / "results" / "README.md"]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in TEXTS if list(stated(page))], ids=name_of)
def test_every_number_with_an_interval_is_in_a_table_of_results(page: Path) -> None:
    assert not without_source(page)


def test_no_exception_is_left_over() -> None:
    for page, numbers in ELSEWHERE.items():
        assert set(numbers) <= {number.text for number in stated(ROOT / page)}, page


@pytest.mark.parametrize(
    ("text", "number", "width", "same"),
    [
        ("58.5 ± 0.7", 58.4567, 0.7123, True),
        ("58.5 ± 0.7", 58.6, 0.7, False),
        ("58.5 ± 0.7", 58.5, 0.8, False),
        ("−1.9 ± 2.1", -1.88, 2.139, True),
        ("26 ± 3", 25.6, 2.7, True),
    ],
)
def test_what_counts_as_the_same_number(text: str, number: float, width: float, same: bool) -> None:
    assert Stated("page.md", 1, text).matches(number, width) == same
