"""A job: one run to be trained and tested, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from firststep.errors import FirststepError
from firststep.training import Run, TrainConfig
from firststep.training.checkpoint import saved_update


@dataclass(frozen=True, kw_only=True)
class Test:
    """What to test a trained run with."""

    __test__: ClassVar[bool] = False  # tells pytest that this is not one of its tests

    name: str
    """Of the result files: ``<run folder>/evaluations/<name>.json`` and ``.csv``."""
    options: dict[str, Any]
    """Keyword arguments of :func:`firststep.evaluation.evaluate.evaluate`."""

    def path(self, folder: Path) -> Path:
        """Where the results of a run in ``folder`` go, without the ending."""
        return folder / "evaluations" / self.name


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run to be trained, or resumed, and then tested."""

    name: str
    """Unique in its fleet; shown to people."""
    config: TrainConfig
    folder: Path
    tests: tuple[Test, ...] = ()

    @property
    def run(self) -> Run:
        return Run(self.folder)

    def is_trained(self) -> bool:
        """Whether the run has all its updates; a run with other settings in its folder is refused."""
        if not self.run.record_path.is_file():
            return False
        refuse_other_settings(self)
        return saved_update(self.run.checkpoint_path("last")) >= self.config.total_updates

    def missing_tests(self) -> list[Test]:
        return [test for test in self.tests if not _result(test, self.folder).is_file()]

    def is_done(self) -> bool:
        return self.is_trained() and not self.missing_tests()


def _result(test: Test, folder: Path) -> Path:
    # The CSV is written after the JSON: where it is, both are.
    path = test.path(folder)
    return path.with_name(f"{path.name}.csv")


State = Literal["waiting", "training", "testing", "done", "was done", "failed"]


@dataclass(frozen=True, kw_only=True)
class Report:
    """What has become of a job, told as it happens."""

    job: str
    state: State
    update: int = 0
    """While training: meta-updates so far. While testing: episodes of this test so far."""
    total: int = 0
    text: str = ""
    """A few words for people; for a failed job the reason, in one line."""


Tell = Callable[[Report], None]

ANYWHERE = ("data_path", "cache", "device", "threads")
"""Settings that say where a run is computed, not what: they may differ when it goes on."""


def refuse_other_settings(job: Job) -> None:
    """A folder that holds a run with other settings is somebody's work: neither resumed nor overwritten."""
    found, wanted = job.run.config.to_json(), job.config.to_json()
    for field, value in wanted.items():
        if field not in ANYWHERE and found[field] != value:
            raise FirststepError(
                f"{job.folder} holds a run with {field} {found[field]}, not {value}; choose another folder"
            )
