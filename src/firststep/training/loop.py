"""The outer loop: meta-batches, meta-updates, validation, selection of the best model, checkpoints.

Tasks and validation episodes are distributed over the ranks of a team. Every rank takes the same step, and
only rank 0 writes. The default is a team of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from firststep.data import Dataset, TaskSource
from firststep.distributed import Team
from firststep.errors import FirststepError
from firststep.evaluation import Measurement, measure_tasks
from firststep.task import Task
from firststep.training.batch_report import BatchReport, UnreadReport, all_finite, unread_report
from firststep.training.build import (
    build_feed,
    build_meta_learner,
    choose_device,
    method_of,
    open_training_data,
    training_episodes,
    validation_episodes,
)
from firststep.training.config import TrainConfig
from firststep.training.feed import Feed
from firststep.training.log import MetricsLog
from firststep.training.run import Run
from firststep.training.sessions import timed
from firststep.training.start import (
    check_every_rank_has_tasks,
    check_same_data,
    load_init,
    lock_folder,
    resolve_run,
)
from firststep.training.state import TrainingState
from firststep.utils import StopRequest, stop_requests


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """The progress that a callback receives after every update.

    Examples:
        >>> from dataclasses import replace
        >>> from firststep.training import train
        >>> def show(progress):
        ...     print(progress.update, "of", progress.total)
        >>> _ = train(replace(run.config, steps=1), "watched-run", on_update=show)
        1 of 2
        2 of 2
    """

    update: int
    total: int
    loss: float
    """Mean query loss of the meta-batch; on an accelerator of the last one that was read."""
    validation: Measurement | None
    """The validation, if this update was validated."""
    averaged: Measurement | None = None
    """The validation of the averaged weights, if there are any."""
    best: float
    """Best validation accuracy so far, or the main metric of another kind of problem."""


OnUpdate = Callable[[TrainingProgress], None]


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop and has saved a checkpoint; the message says how to resume.

    Examples:
        >>> from firststep.training import Interrupted
        >>> issubclass(Interrupted, KeyboardInterrupt)
        True
    """


def train(
    config: TrainConfig | None = None,
    out: str | Path | None = None,
    *,
    resume: str | Path | None = None,
    updates: int | None = None,
    resume_if_exists: bool = False,
    restart: bool = False,
    on_update: OnUpdate | None = None,
    on_init: Callable[[list[str]], None] | None = None,
    data: Dataset | None = None,
    team: Team | None = None,
) -> Run:
    """Meta-train into the new folder ``out``, or resume the run in the folder ``resume``.

    A run that is killed at any moment and resumed ends bit-identical to an uninterrupted one: the same
    checkpoint, the same metrics. The same holds for any number of processes.

    Args:
        config: the settings of the run.
        out: folder of the new run.
        resume: folder of an interrupted run; its own configuration is used.
        updates: with ``resume``, a new number of meta-updates, which is stored in the run's record. The
            result
            equals a run with this number from the start, unless a schedule spans the whole training (maml++,
            cosine).
        resume_if_exists: if ``out`` already holds a run of the same configuration, resume it: for launchers
            that repeat the same command after a failure.
        restart: with ``resume``, start over if the run has lost its last checkpoint.
        on_update: called after every update.
        on_init: called with the names of the parameters for which ``config.init`` has no weights.
        data: the dataset of ``config``, if it is already open.
        team: the processes that share the work, all of which call this; default this process alone.

    Examples:
        >>> from dataclasses import replace
        >>> from firststep.training import train
        >>> tiny = replace(run.config, steps=1, updates=1)
        >>> train(tiny, "another-run").name
        'another-run'
    """
    ranks = team or Team()
    run, chosen, is_new = ranks.on_rank0(lambda: resolve_run(config, out, resume, updates, resume_if_exists))
    check_every_rank_has_tasks(chosen, ranks)
    opened = data or ranks.on_all_ranks(lambda: open_training_data(chosen))
    check_same_data(opened, ranks)
    device = ranks.device(lambda: choose_device(chosen.device))
    meta = ranks.on_all_ranks(
        lambda: build_meta_learner(
            chosen,
            None if isinstance(opened, TaskSource) else opened.preprocessing,
            device=device,
            weights_follow=not is_new and run.checkpoint_path("last").is_file(),
        )
    )
    init_digest, own = ranks.on_all_ranks(lambda: load_init(run, chosen, is_new, meta))
    training, validation = ranks.on_all_ranks(
        lambda: (
            build_feed(chosen, training_episodes(chosen, opened), device),
            build_feed(chosen, validation_episodes(chosen, opened), device),
        )
    )
    with ExitStack() as held:
        saved = ranks.on_rank0(lambda: lock_folder(run, chosen, opened, is_new, restart, held, init_digest))
        if init_digest is not None and on_init is not None:
            on_init(own)
        if ranks.is_rank0:
            held.enter_context(timed(run.folder, chosen.device))
        state = TrainingState(meta, chosen)
        if saved is not None:
            state.restore(saved, run.checkpoint_path("last"))
        _Training(run, chosen, state, training, validation, ranks, on_update).run_to_end()
    return run


class _Training:
    def __init__(
        self,
        run: Run,
        config: TrainConfig,
        state: TrainingState,
        training: Feed,
        validation: Feed,
        team: Team,
        on_update: OnUpdate | None,
    ) -> None:
        self.run, self.config, self.state, self.meta = run, config, state, state.meta
        self.query_weights = method_of(config).query_weights
        self.training, self.validation = training, validation
        self.team, self.on_update = team, on_update
        self.log: MetricsLog | None = None  # on rank 0
        self.unread: list[UnreadReport] = []
        self.report: BatchReport | None = None  # the last one that was read

    def run_to_end(self) -> None:
        with ExitStack() as held, stop_requests() as stop:

            def open_log() -> None:
                self.log = held.enter_context(MetricsLog(self.run, self.config, self.state.update))

            # Wait until every rank handles stop requests, before anything is logged.
            self.team.barrier()
            self.team.on_rank0(open_log)
            self._updates(stop, held.enter_context(closing(self.training.tasks(self._upcoming()))))

    def _upcoming(self) -> Iterator[int]:
        """Yield the numbers of this rank's episodes from now to the end of the training."""
        size = self.config.meta_batch
        for update in range(self.state.update, self.config.total_updates):
            yield from self.team.share(range(update * size, (update + 1) * size))

    def _updates(self, stop: StopRequest, tasks: Iterator[Task]) -> None:
        total = self.config.total_updates
        while not self.config.is_finished(self.state.update, self.state.best["update"]):
            self.unread.append(self._one_update(tasks))
            validation = averaged = None
            due = self.state.update % self.config.validate_every == 0 or self.state.update == total
            # To read the losses makes an accelerator wait: once before each validation, and at the start.
            report = self.report
            if due or report is None or self.meta.device.type == "cpu":
                report = self._read()
            if due:
                validation, averaged = self._validate(report)
            if self.on_update is not None:
                self.on_update(
                    TrainingProgress(
                        update=self.state.update,
                        total=total,
                        loss=report.mean_query_loss(),
                        validation=validation,
                        averaged=averaged,
                        best=self.state.best_value,
                    )
                )
            # A signal reaches the ranks at different times: agree on the update to stop at.
            finished = self.config.is_finished(self.state.update, self.state.best["update"])
            if self.team.any(bool(stop)) and not finished:
                if self.unread:
                    self._read()  # nothing that is not finite is saved
                self.team.on_rank0(self._save_last)
                raise Interrupted(
                    f"stopped after update {self.state.update} of {total} and saved; resume with: "
                    f"firststep train --resume {self.run.folder}"
                )

    def _one_update(self, tasks: Iterator[Task]) -> UnreadReport:
        state, size = self.state, self.config.meta_batch
        numbers = range(state.update * size, (state.update + 1) * size)
        weights = self.query_weights(state.update, self.config.total_updates, self.config.steps)
        total = self.team.ordered_sum(size)
        computed = []
        mine = islice(tasks, len(self.team.share(numbers)))
        # `several` describes the whole meta-batch: results must not depend on the number of processes.
        for result in self.meta.iterate_task_gradients(mine, query_weights=weights, several=size > 1):
            total.add(result.gradients)
            computed.append(result._replace(gradients={}))  # the gradients are already in the sum
        gradients = total.result()
        finite = all_finite(gradients)  # clipping changes them
        norm = state.step(gradients)
        return unread_report(state.update, numbers, computed, finite, norm)

    def _read(self) -> BatchReport:
        """Read the losses of the updates since the last time; return those of the last update."""
        for report in BatchReport.read(self.team, self.unread):
            not_finite = report.describe_not_finite(self.config.seed)
            if not_finite is not None:
                raise FirststepError(
                    f"the loss is not finite at update {report.update}: {not_finite}; the last good "
                    f"checkpoint stays in {self.run.folder}; a smaller rate or outer_rate may help"
                )
        self.unread, self.report = [], report
        return report

    def _validate(self, report: BatchReport) -> tuple[Measurement, Measurement | None]:
        """Validate the weights and their average, if any; log and save."""
        steps = range(self.config.steps + 1)
        episodes = range(self.config.validation_episodes)
        validation = self._measure(self.validation, episodes, steps)
        training = self._measure(self.training, report.numbers, steps)
        entry: dict[str, Any] = {
            "query_loss": report.mean_query_loss(),
            "conditioning_loss": report.mean_conditioning(),
            "gradient_norm": report.gradient_norm,
            "validation_half_width": validation.half_width().tolist(),
        }
        for name, metric in validation.metrics.items():
            # Metrics of the next step, such as κ, have stages 0..K-1, which the loss constrains.
            stages = slice(0, -1 if metric.before_step else None)
            for split, measured in (("train", training), ("validation", validation)):
                entry[f"{split}_{name}"] = measured.mean(name)[stages].tolist()
        every = self.config.all_every
        if every and (self.state.update // self.config.validate_every) % every == 0:
            # `all` is expensive, so it is measured on one meta-batch per split.
            few, of_gram = range(len(report.numbers)), ("condition_number", "rank")
            for split, source, some in (
                ("train", self.training, report.numbers),
                ("validation", self.validation, few),
            ):
                of_all = self._measure(source, some, steps[:-1], subset="all", metrics=of_gram)
                for name in of_gram:
                    entry[f"{split}_{name}_all"] = of_all.mean(name).tolist()
        sign, main = self.state.sign, validation.main
        scores = {"raw": sign * float(validation.mean()[self.config.selected_step])}
        averaged = None
        if self.state.average is not None:
            with self.state.averaged():
                averaged = self._measure(self.validation, episodes, steps, metrics=(main,))
            entry[f"validation_{main}_averaged"] = averaged.mean().tolist()
            scores["averaged"] = sign * float(averaged.mean()[self.config.selected_step])
        which = max(scores, key=scores.__getitem__)
        is_best = scores[which] > self.state.best["accuracy"]
        if is_best:
            self.state.best = {"accuracy": scores[which], "update": self.state.update}

        def write() -> None:
            assert self.log is not None
            self.log.write(self.state.update, entry)
            if is_best:
                # Written before `last`: after a kill in between, the resumed run repeats this validation.
                with self.state.averaged() if which == "averaged" else nullcontext():
                    self.state.checkpoint(optimizer=False).save(self.run.checkpoint_path("best"))
            self._save_last()

        self.team.on_rank0(write)
        return validation, averaged

    def _measure(
        self,
        source: Feed,
        numbers: range,
        steps: range,
        subset: str | None = None,
        metrics: Sequence[str] | None = None,
    ) -> Measurement:
        with closing(source.tasks(self.team.share(numbers))) as tasks:
            mine = measure_tasks(
                self.meta,
                tasks,
                steps=steps,
                subset=subset or self.config.measured_subset,
                metrics=metrics,
                check_finite=False,  # the next update stops, on all ranks, and names the episode
            )
        return mine.gather(self.team, len(numbers))

    def _save_last(self) -> None:
        self.state.checkpoint(optimizer=True).save(self.run.checkpoint_path("last"))
