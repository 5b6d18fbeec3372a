"""Numbers with an interval in running text, and where in results/ each of them is from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docsite.paths import ROOT
from docsite.results import intervals

_INTERVAL = re.compile(r"(?P<value>[-−+]?\d+(?:\.\d+)?) ± (?P<width>\d+(?:\.\d+)?)")
_OUTPUT = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)

ELSEWHERE: dict[str, dict[str, str]] = {
    "docs/paper.md": {
        "0.4 ± 1.1": "difference of the paper's printed means",
        "8.6 ± 2.7": "difference of the paper's printed means",
        "4.5 ± 2.5": "difference of the paper's printed means",
        "60.6 ± 4.9": "the log of ResNet10's pretraining",
    },
    "docs/using.md": {
        "77.4 ± 2.5": "the command beside it",
        "96.4 ± 0.9": "the command beside it",
    },
}
"""Page → numbers that are in no file of results/, and what they are from."""


class Stated(NamedTuple):
    page: str
    line: int
    text: str

    def matches(self, number: float, half_width: float) -> bool:
        """Return whether it is these two, as rounded in print; a loss may be stated as a positive number."""
        value, width = self.text.replace("−", "-").replace("+", "").split(" ± ")
        near = [0.5 * 10 ** -len(part.partition(".")[2]) + 1e-6 for part in (value, width)]
        return abs(abs(number) - abs(float(value))) <= near[0] and abs(half_width - float(width)) <= near[1]


def stated(path: Path) -> Iterator[Stated]:
    """Yield every number with an interval on a page, outside of blocks of code and output."""
    text = _OUTPUT.sub(lambda block: "\n" * block[0].count("\n"), path.read_text())
    for found in _INTERVAL.finditer(text):
        yield Stated(str(path.relative_to(ROOT)), text.count("\n", 0, found.start()) + 1, found[0])


def without_source(path: Path) -> list[Stated]:
    """Return the numbers of a page that no table below results/ has."""
    known = {pair for pairs in intervals().values() for pair in pairs}
    return [
        number
        for number in stated(path)
        if number.text not in ELSEWHERE.get(number.page, {})
        and not any(number.matches(*pair) for pair in known)
    ]
