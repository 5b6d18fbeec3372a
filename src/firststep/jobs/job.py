"""A job: one run to train and evaluate, and the events that report on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firststep.errors import FirststepError
from firststep.evaluation import EvaluationSettings
from firststep.training import Run, TrainConfig, TrainingProgress, saved_progress

MACHINE_SETTINGS = ("data_path", "cache", "device", "threads", "log")
"""Settings that say where a run is computed, not what: a resumed run may change them."""


@dataclass(frozen=True, kw_only=True)
class EvaluationSpec:
    """The evaluation of a trained run.

    Examples:
        >>> from firststep.evaluation import EvaluationSettings
        >>> from firststep.jobs import EvaluationSpec
        >>> EvaluationSpec(name="test", settings=EvaluationSettings(episodes=600)).path(run.folder).name
        'test'
    """

    name: str
    """Name of the result files: ``<run folder>/evaluations/<name>.json`` and ``.csv``."""
    settings: EvaluationSettings
    """The tasks, and how they are measured."""
    which: str = "best"
    """Checkpoint: ``best`` by validation, or ``last``."""

    def path(self, folder: Path) -> Path:
        """Return the path of the result files of a run in ``folder``, without the suffix."""
        return folder / "evaluations" / self.name

    def is_done(self, folder: Path) -> bool:
        """Return whether the results of a run in ``folder`` exist."""
        path = self.path(folder)
        return path.with_name(f"{path.name}.json").is_file()


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run to train or resume, and then to evaluate.

    Examples:
        >>> from firststep.jobs import Job
        >>> Job(name="a run", config=run.config, folder=run.folder).is_done()
        True
    """

    name: str
    """Unique among the jobs that run together; shown to people."""
    config: TrainConfig
    folder: Path
    evaluations: tuple[EvaluationSpec, ...] = ()

    @property
    def run(self) -> Run:
        """The run in the job's folder."""
        return Run(self.folder)

    def is_trained(self) -> bool:
        """Return whether the run has all its updates or stopped early.

        Raises:
            FirststepError: if the folder holds a run with other settings.
        """
        if not self.run.record_path.is_file():
            return False
        self._refuse_other_settings()
        return self.config.is_finished(*saved_progress(self.run.checkpoint_path("last")))

    def missing_evaluations(self) -> list[EvaluationSpec]:
        """Return the evaluations without results."""
        return [spec for spec in self.evaluations if not spec.is_done(self.folder)]

    def is_done(self) -> bool:
        """Return whether the run is trained and has all its evaluations."""
        return self.is_trained() and not self.missing_evaluations()

    def _refuse_other_settings(self) -> None:
        """Raise an error if the folder holds a run with other settings: it must not be overwritten."""
        found, wanted = self.run.config.to_json(), self.config.to_json()
        for field, value in wanted.items():
            if field not in MACHINE_SETTINGS and found[field] != value:
                raise FirststepError(
                    f"{self.folder} holds a run with {field} {found[field]}, not {value}; "
                    "choose another folder"
                )


JobState = Literal["waiting", "training", "testing", "done", "skipped", "failed"]
"""A job that was finished before it started is ``skipped``.

Examples:
    >>> from typing import get_args
    >>> from firststep.jobs import JobState
    >>> get_args(JobState)
    ('waiting', 'training', 'testing', 'done', 'skipped', 'failed')
"""


@dataclass(frozen=True, kw_only=True)
class JobEvent:
    """A change in the state or progress of a job.

    Examples:
        >>> from firststep.jobs import JobEvent
        >>> JobEvent(job="seed 0", state="training", update=10, total=100).is_final
        False
    """

    job: str
    state: JobState
    update: int = 0
    """While training: meta-updates so far. While testing: episodes of this evaluation so far."""
    total: int = 0
    text: str = ""
    """A few words for people; for a failed job the reason, in one line."""
    progress: TrainingProgress | None = None
    """While training: what the training loop reported."""

    @property
    def is_final(self) -> bool:
        """Whether nothing more happens to the job."""
        return self.state in ("done", "skipped", "failed")


OnEvent = Callable[[JobEvent], None]
"""A function that is called with every event of a job.

Examples:
    >>> from firststep.jobs import InlineExecutor, Job, OnEvent, run_jobs
    >>> on_event: OnEvent = lambda event: print(event.job, event.state)
    >>> job = Job(name="a run", config=run.config, folder=run.folder)
    >>> failed = run_jobs([job], InlineExecutor(), on_event)
    a run skipped
"""
