"""The outer loop: meta-batches, Adam, validation, best-model selection, checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from firststep.data import Dataset, Episodes
from firststep.errors import FirststepError
from firststep.evaluation.measure import Measurement, measure_tasks
from firststep.learner import Params
from firststep.metagradient import MetaGradient, MetaGradientResult
from firststep.task import Task
from firststep.training.checkpoint import Checkpoint, check_fits
from firststep.training.config import TrainConfig
from firststep.training.interrupt import stop_requests
from firststep.training.metrics import MetricsLog
from firststep.training.optimiser import optimiser_state, restore_optimiser
from firststep.training.run import Run, open_run
from firststep.training.sessions import timed
from firststep.training.setup import (
    Setup,
    open_data,
    set_up,
    training_episodes,
    validation_episodes,
)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a watcher is told after every update."""

    update: int
    total: int
    loss: float
    """Mean query loss of the meta-batch."""
    validation: Measurement | None
    """Set when this update was validated."""
    best: float
    """Best validation accuracy so far."""


Watcher = Callable[[Progress], None]


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop and has saved; the message says how to go on."""


def train(
    config: TrainConfig | None = None,
    out: str | Path | None = None,
    *,
    resume: str | Path | None = None,
    updates: int | None = None,
    watch: Watcher | None = None,
    data: Dataset | None = None,
) -> Run:
    """Meta-train into the new folder ``out``, or go on with the run in the folder ``resume``.

    A run that was killed at any moment and is resumed ends bit-identical to one that was not: the same
    checkpoint, the same metrics.

    Args:
        config: what to train.
        out: the folder of the new run.
        resume: the folder of a run that was cut; its own configuration is used.
        updates: with ``resume``, train to this many meta-updates instead, which is then what the run's
            record says. Except for methods with a schedule over the whole training (maml++), the result is
            that of a run configured so from the start.
        watch: called after every update.
        data: the dataset of ``config``, if it is open already.
    """
    if (resume is None) == (config is None or out is None):
        raise FirststepError("train needs either a configuration and a folder, or a run to resume")
    run = open_run(resume) if resume is not None else Run(Path(str(out)))
    if resume is not None:
        config = run.config if updates is None else replace(run.config, updates=updates)
    elif updates is not None:
        raise FirststepError("updates goes with resume; a new run has it in its configuration")
    assert config is not None
    data = data or open_data(config)
    setup = set_up(config, image_size=data.image_size, channels=data.channels)
    episodes = training_episodes(config, data), validation_episodes(config, data)
    if resume is None:
        run.create(config, data)
    elif run.record["data_fingerprint"] != data.fingerprint:
        raise FirststepError(
            f"{run.folder} was trained on other data (fingerprint {run.record['data_fingerprint']}, "
            f"here {data.fingerprint}): the run cannot go on"
        )
    with run.lock(), timed(run.folder, config.device):
        if config != run.config:
            run.change(config)
        _Training(run, setup, *episodes, watch).run_to_end()
    return run


class _Training:
    def __init__(
        self, run: Run, setup: Setup, training: Episodes, validation: Episodes, watch: Watcher | None
    ) -> None:
        self.run, self.setup, self.config = run, setup, setup.config
        self.training, self.validation = training, validation
        self.watch = watch
        config = setup.config
        self.params, self.own = setup.initial()
        self.update = 0
        self.best: dict[str, Any] = {"accuracy": -1.0, "update": 0}
        self.optimiser = torch.optim.Adam([*self.params.values(), *self.own.values()], config.outer_rate)
        self.meta_gradient = MetaGradient(
            setup.learner,
            setup.method.rule,
            steps=config.steps,
            conditioning=config.term,
            engine=config.engine,
            compile=config.compile,
        )
        if run.checkpoint_path("last").is_file():
            self._restore()

    def _restore(self) -> None:
        path = self.run.checkpoint_path("last")
        state = self.run.load("last", self.setup.device)
        check_fits(path, self.params, state.params, "network")
        check_fits(path, self.own, state.own, "method")
        for mine, saved in ((self.params, state.params), (self.own, state.own)):
            for name, value in mine.items():
                value.copy_(saved[name])
        restore_optimiser(self.optimiser, self._named(), state.optimiser)
        if state.update > self.config.total_updates:
            raise FirststepError(
                f"{self.run.folder} has {state.update} updates already, more than {self.config.total_updates}"
            )
        self.update = state.update
        self.best = state.facts["best"]

    def _named(self) -> Params:
        return {f"params/{n}": v for n, v in self.params.items()} | {
            f"own/{n}": v for n, v in self.own.items()
        }

    def run_to_end(self) -> None:
        total = self.config.total_updates
        with MetricsLog(self.run, self.update) as log, stop_requests() as stop:
            while self.update < total:
                tasks, result = self._one_update()
                validation = None
                if self.update % self.config.validate_every == 0 or self.update == total:
                    validation = self._validate(log, tasks, result)
                if self.watch is not None:
                    self.watch(
                        Progress(
                            update=self.update,
                            total=total,
                            loss=_mean_query_loss(result),
                            validation=validation,
                            best=self.best["accuracy"],
                        )
                    )
                if stop and self.update < total:
                    self._save_last()
                    raise Interrupted(
                        f"stopped after update {self.update} of {total} and saved; go on with: "
                        f"firststep train --resume {self.run.folder}"
                    )

    def _one_update(self) -> tuple[list[Task], MetaGradientResult]:
        size = self.config.meta_batch
        numbers = range(self.update * size, (self.update + 1) * size)
        tasks = [self.setup.task(self.training[number]) for number in numbers]
        weights = self.setup.method.query_weights(self.update, self.config.total_updates, self.config.steps)
        result = self.meta_gradient(self.params, self.own, tasks, query_weights=weights)
        self._refuse_non_finite(result, numbers)
        for values, grads in ((self.params, result.params), (self.own, result.own)):
            for name, value in values.items():
                value.grad = grads[name]
        self.optimiser.step()
        self.update += 1
        return tasks, result

    def _refuse_non_finite(self, result: MetaGradientResult, numbers: range) -> None:
        gradients = [*result.params.values(), *result.own.values()]
        if math.isfinite(result.loss.item()) and all(bool(torch.isfinite(g).all()) for g in gradients):
            return
        what = "the gradient is not finite although the losses are"
        for number, report in zip(numbers, result.tasks, strict=True):
            if not math.isfinite((report.query_loss + report.conditioning).item()):
                support = ", ".join(f"{loss:.3g}" for loss in report.support_losses.tolist())
                what = (
                    f"training episode {number} (seed {self.config.seed}) has query loss "
                    f"{report.query_loss.item():.3g}, conditioning {report.conditioning.item():.3g}, "
                    f"support losses {support}"
                )
                break
        raise FirststepError(
            f"the loss is not finite at update {self.update + 1}: {what}; the last good checkpoint stays in "
            f"{self.run.folder}; a smaller --rate or --outer-rate may help"
        )

    def _validate(self, log: MetricsLog, tasks: list[Task], result: MetaGradientResult) -> Measurement:
        steps = range(self.config.steps + 1)
        validation = self._measure(
            (self.setup.task(self.validation[i]) for i in range(self.config.validation_episodes)), steps
        )
        training = self._measure(tasks, steps)
        entry: dict[str, Any] = {
            "query_loss": _mean_query_loss(result),
            "conditioning_loss": sum(r.conditioning.item() for r in result.tasks) / len(result.tasks),
            "train_accuracy": training.mean().tolist(),
            "validation_accuracy": validation.mean().tolist(),
            "validation_half_width": validation.half_width().tolist(),
            # Stages 0..K-1, at the parameters before each step: what the loss constrains.
            "train_condition_number": training.condition_number().tolist()[:-1],
            "validation_condition_number": validation.condition_number().tolist()[:-1],
        }
        every = self.config.all_every
        if every and (self.update // self.config.validate_every) % every == 0:
            # `all` is costlier: on the tasks of one meta-batch of each kind.
            few = [self.setup.task(self.validation[i]) for i in range(len(tasks))]
            for name, some in (("train", tasks), ("validation", few)):
                of_all = self._measure(some, steps[:-1], subset="all")
                entry[f"{name}_condition_number_all"] = of_all.condition_number().tolist()
        log.write(self.update, entry)
        accuracy = entry["validation_accuracy"][-1]
        if accuracy > self.best["accuracy"]:
            self.best = {"accuracy": accuracy, "update": self.update}
            # Before `last`: if we are killed in between, the resumed run comes by here again.
            self._checkpoint(optimiser={}).save(self.run.checkpoint_path("best"))
        self._save_last()
        return validation

    def _measure(self, tasks: Any, steps: range, subset: str | None = None) -> Measurement:
        constrained = self.config.subset if self.config.term is not None else "cls"
        return measure_tasks(
            self.setup.learner,
            self.setup.method.rule,
            self.params,
            self.own,
            tasks,
            steps=steps,
            subset=subset or constrained,
        )

    def _checkpoint(self, optimiser: Params) -> Checkpoint:
        return Checkpoint(
            update=self.update,
            params=self.params,
            own=self.own,
            optimiser=optimiser,
            facts={"best": self.best},
        )

    def _save_last(self) -> None:
        state = optimiser_state(self.optimiser, self._named())
        self._checkpoint(state).save(self.run.checkpoint_path("last"))


def _mean_query_loss(result: MetaGradientResult) -> float:
    return sum(report.query_loss.item() for report in result.tasks) / len(result.tasks)
