"""``result.json``: how a result was made, as typed values. The numbers are beside it, in ``numbers.csv``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

from firststep.errors import FirststepError
from firststep.utils import check_format, read_json, to_record, write_json

FORMAT, OLD_FORMAT = "firststep-paper-result-2", "firststep-paper-result-1"
RECORD = "result.json"
Setting = str | int | float | bool | None
"""Value of a setting of a run or of a scale."""


@dataclass(frozen=True, kw_only=True)
class ScaleRecord:
    """The scale of a result with every change that it made to the paper's protocol."""

    name: str
    overrides: list[str]
    """Names of the changes that the user made on top of the named scale."""
    changes: dict[str, Setting]
    """Every change, by name. Paths are replaced by ``PATH``; seeds are not a change of scale."""


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """Data of the experiment that were not available."""

    used: str | None
    """Dataset that was used instead; None if rows are missing instead."""
    missing: list[str]
    """Datasets of the experiment that were not given."""
    printed: bool = True
    """Whether the paper prints numbers for the missing data."""


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A row of the experiment."""

    label: str
    over: str | None = None
    """Label of the row that gains are taken over."""
    planned: bool = True
    """Whether the row was to be run here; False if its dataset was not given."""


@dataclass(frozen=True, order=True)
class Column:
    """Accuracies after ``step`` inner steps at ``rate_multiplier`` times the trained rate."""

    step: int
    rate_multiplier: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Rows and columns of a result's table."""

    rows: list[TableRow]
    columns: list[Column]
    shows: list[str]
    """Names of metrics before the first step, or ``parameters``: the columns after the accuracies."""

    @property
    def planned(self) -> int:
        """Number of rows that were to be run here."""
        return sum(row.planned for row in self.rows)


@dataclass(frozen=True)
class DataVersion:
    """A dataset and the fingerprint of its images and split."""

    name: str
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class TestEpisodes:
    """The episodes of a test."""

    __test__ = False  # not a test of pytest

    episodes: int
    split: str
    seed: int
    queries: int


@dataclass(frozen=True)
class CodeVersion:
    """A version of firststep."""

    firststep: str | None
    commit: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunTime:
    """Training time of a run."""

    name: str
    seconds: float | None
    """None if the run has no record of its sessions."""
    killed: int = 0
    """Number of sessions that were killed, whose time is unknown."""
    rounded: bool = False
    """Whether ``seconds`` is rounded to a tenth of an hour, as in results converted from format 1."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """The common settings of a result's runs, and the distinct values of the others."""

    data: list[DataVersion]
    tests: list[TestEpisodes]
    code: list[CodeVersion]
    initial_weights: list[str] = field(default_factory=list)
    """Digests of the weights that the runs started from."""
    torch: list[str]
    hardware: list[str]
    runs: list[RunTime]
    training_seconds: float
    """Sum over the runs whose time is known."""
    config: dict[str, Setting]
    """Settings that all runs share, by their name in ``TrainConfig``, without paths."""
    varying: dict[str, list[Setting]]
    """Settings in which the runs differ: name → distinct values."""


@dataclass(frozen=True, kw_only=True)
class ResultRecord:
    """The record of a result: the content of ``result.json``.

    Examples:
        >>> record = result.record
        >>> record.experiment, record.seeds, record.provenance.tests[0].episodes
        ('one-row', [0], 2)
    """

    experiment: str
    title: str
    note: str
    definition: str = ""
    """The experiment's definition when it ran, if it has changed since."""
    remarks: list[str] = field(default_factory=list)
    """Handwritten remarks; kept when the result is written again."""
    command: list[str]
    scale: ScaleRecord
    seeds: list[int]
    """Training seeds; with more than one, intervals are over trainings."""
    stand_in: StandIn | None = None
    table: Layout
    figure: bool = False
    """Whether a figure belongs to the result."""
    exists: bool
    """Whether anything was run."""
    provenance: Provenance | None = None
    """None if nothing was run here."""

    def __post_init__(self) -> None:
        if not self.seeds:
            raise FirststepError("seeds: expected at least one seed, got none")

    def save(self, folder: Path) -> None:
        """Write ``result.json`` into ``folder``."""
        write_json(folder / RECORD, {"format": FORMAT, **asdict(self)})


def read_record_of(folder: Path) -> ResultRecord:
    """Read ``result.json`` in ``folder``."""
    path = folder / RECORD
    content = read_json(path)
    if isinstance(content, dict) and content.get("format") == OLD_FORMAT:
        raise FirststepError(
            f"{path} was written by an earlier version: remove it, and run `firststep paper show` again"
        )
    check_format(content, str(path), FORMAT)
    return to_record(content, ResultRecord, str(path))
