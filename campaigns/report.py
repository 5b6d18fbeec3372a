"""Count results by kind, and name the command that reproduces each violation."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

EXAMPLES = 3
"""Cases shown of one violation; the others are counted."""


@dataclass(frozen=True, kw_only=True)
class Violation:
    promise: str
    """which promise is broken and where, the same for all cases with one cause"""
    details: str
    """what was seen"""


@dataclass(frozen=True, kw_only=True)
class Result:
    campaign: str
    kind: str
    seed: int
    what: str
    """the case in a line"""
    count: str
    """how it ended, a column of the table"""
    violations: list[Violation] = field(default_factory=list)
    seconds: float = 0.0

    def to_line(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_line(line: str) -> Result:
        values = json.loads(line)
        return Result(**{**values, "violations": [Violation(**v) for v in values["violations"]]})

    @property
    def again(self) -> str:
        return f"python -m campaigns {self.campaign} --only {self.kind}:{self.seed}"


def violation_lines(results: Iterable[Result]) -> list[str]:
    """Return the violations by promise, most frequent first, each with a few of its cases."""
    groups: dict[str, list[tuple[Result, Violation]]] = defaultdict(list)
    for result in results:
        for violation in result.violations:
            groups[violation.promise].append((result, violation))
    lines = []
    for promise, found in sorted(groups.items(), key=lambda group: -len(group[1])):
        lines.append(f"VIOLATION {promise} ({len(found)} cases)")
        for result, violation in found[:EXAMPLES]:
            lines += [f"    {result.what}", f"        {violation.details}", f"        {result.again}"]
    return lines


def table(results: list[Result], markdown: bool = False) -> str:
    """Return a row per kind: cases, how they ended, violations."""
    columns = sorted({result.count for result in results})
    header = ["kind", "cases", *columns, "violations", "seconds"]
    rows = []
    kinds = list(dict.fromkeys(sorted(result.kind for result in results)))
    for kind in [*kinds, "all"]:
        mine = [result for result in results if kind in (result.kind, "all")]
        counts = Counter(result.count for result in mine)
        broken = sum(bool(result.violations) for result in mine)
        seconds = sum(result.seconds for result in mine)
        ended = [f"{counts[column]:,}" for column in columns]
        rows.append([kind, f"{len(mine):,}", *ended, f"{broken:,}", f"{seconds:.0f}"])
    if markdown:
        lines = [header, ["---"] * len(header), *rows]
        return "\n".join(f"| {' | '.join(row)} |" for row in lines)
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in [header, *rows])
    )
