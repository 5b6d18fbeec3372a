"""Start a training: choose the run, lock its folder, and check that these processes can train it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import torch

from firststep.data import Dataset
from firststep.distributed import Team
from firststep.errors import FirststepError
from firststep.meta_learner import MetaLearner
from firststep.training.checkpoint import Checkpoint
from firststep.training.config import TrainConfig
from firststep.training.initial_weights import read_initial_weights, use_initial_weights
from firststep.training.run import Run, open_run


def resolve_run(
    config: TrainConfig | None,
    out: str | Path | None,
    resume: str | Path | None,
    updates: int | None,
    resume_if_exists: bool,
) -> tuple[Run, TrainConfig, bool]:
    """Return the run, its configuration, and whether it is new; arguments as in ``train``."""
    if (resume is None) == (config is None or out is None):
        raise FirststepError("train needs either a configuration and a folder, or a run to resume")
    if resume is not None:
        run = open_run(resume)
        return run, run.config if updates is None else replace(run.config, updates=updates), False
    if updates is not None:
        raise FirststepError("updates goes with resume; a new run has it in its configuration")
    assert config is not None
    run = Run(Path(str(out)))
    started = resume_if_exists and run.record_path.is_file() and run.config == config
    return run, config, not started


def load_init(run: Run, config: TrainConfig, is_new: bool, meta: MetaLearner) -> tuple[str | None, list[str]]:
    """Load the weights that ``config.init`` names into the meta-learner, unless the run has a checkpoint.

    Return their digest, and the names of the parameters that keep their own initial values.
    """
    if config.init is None or (not is_new and run.checkpoint_path("last").is_file()):
        return None, []
    initial = read_initial_weights(config.init)
    if not is_new and run.record.init_digest != initial.digest:
        raise FirststepError(
            f"{run.folder} began with other weights than {config.init} has now (digest "
            f"{run.record.init_digest}, here {initial.digest}): start a new run"
        )
    return initial.digest, use_initial_weights(meta, initial)


def lock_folder(
    run: Run,
    config: TrainConfig,
    data: Dataset,
    is_new: bool,
    restart: bool,
    held: ExitStack,
    init_digest: str | None = None,
) -> Checkpoint | None:
    """Make or check the folder, lock it until ``held`` closes, and return the run's last checkpoint."""
    if is_new:
        run.make_folder()
    held.enter_context(run.lock())  # before the first write: another process may be starting here too
    if is_new:
        run.create(config, data, init_digest)
    elif run.record.data_fingerprint != data.fingerprint:
        raise FirststepError(
            f"{run.folder} was trained on other data (fingerprint {run.record.data_fingerprint}, "
            f"here {data.fingerprint}): the run cannot go on"
        )
    has_begun = run.checkpoint_path("last").is_file()
    if not has_begun and not restart and len(run.metrics(tolerant=True)) > 1:
        raise FirststepError(
            f"{run.checkpoint_path('last')} is missing although the run had been trained; bring it back, or "
            "start over with `restart=True`, which drops what was logged"
        )
    saved = run.load("last", torch.device("cpu")) if has_begun else None
    if saved is not None and saved.update > config.total_updates:
        raise FirststepError(
            f"{run.folder} has {saved.update} updates already, more than {config.total_updates}"
        )
    if config != run.config:
        run.change(config)
    return saved


def check_every_rank_has_tasks(config: TrainConfig, team: Team) -> None:
    if team.size > config.meta_batch:
        raise FirststepError(
            f"{team.size} processes share {config.meta_batch} tasks a meta-batch, so some would have nothing "
            f"to do: start at most {config.meta_batch}, or raise meta_batch"
        )


def check_same_data(data: Dataset, team: Team) -> None:
    """Refuse data that differs between hosts, each of which may have its own copy."""
    expected = team.on_rank0(lambda: data.fingerprint)

    def compare() -> None:
        if data.fingerprint != expected:
            raise FirststepError(f"{data.name} differs from rank 0's: {data.fingerprint}, not {expected}")

    team.on_all_ranks(compare)
