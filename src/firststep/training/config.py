"""The settings that determine a training run: typed, checked and stored with its results."""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firststep.errors import FirststepError
from firststep.training.settings import (
    FIRST_FIELDS,
    FORMER_FIELDS,
    MethodSettings,
    NetworkSettings,
    OuterLoopSettings,
    RunningSettings,
    TaskSettings,
)
from firststep.utils import to_record

if TYPE_CHECKING:
    from firststep.losses import Kind
    from firststep.metagradient import Conditioning, EngineOptions

LARGEST_SEED = 2**63 - 1
MOST_THREADS = 1024
"""Largest accepted number of threads; many more crash PyTorch's thread pool."""
OPTIMIZERS = ("adam", "adamw")


_REGISTRIES = {
    "data": ("firststep.data", "DATASETS"),
    "backbone": ("firststep.backbones", "BACKBONES"),
    "method": ("firststep.methods", "METHODS"),
    "head": ("firststep.network", "HEADS"),
    "loss": ("firststep.losses", "LOSSES"),
    "query_weights": ("firststep.rules", "QUERY_WEIGHTS"),
    "optimizer": (__name__, "OPTIMIZERS"),
    "schedule": ("firststep.training.schedule", "SCHEDULES"),
    "conditioning": ("firststep.conditioning", "CONDITIONING_LOSSES"),
    "engine": ("firststep.metagradient", "ENGINES"),
}
"""Registries of allowed values. Most of these modules import torch, so they are imported on demand."""


_OF_IMAGES = (
    *("data", "data_path", "ways", "image_size", "augment", "rotations", "partial", "skip_broken", "cache"),
    "pretrained",
)


def _allowed(option: str) -> tuple[str, ...]:
    module, name = _REGISTRIES[option]
    names = tuple(getattr(import_module(module), name))
    return ("none", *names) if option == "conditioning" else names


def choices() -> dict[str, tuple[str, ...]]:
    """Return the allowed values of fields with a registry; users can register more at any time."""
    return {option: _allowed(option) for option in _REGISTRIES}


@dataclass(frozen=True, kw_only=True)
class TrainConfig(RunningSettings, OuterLoopSettings, MethodSettings, NetworkSettings, TaskSettings):
    """A meta-training run. The defaults are the paper's protocol.

    Examples:
        >>> from firststep.training import TrainConfig
        >>> TrainConfig(filters=32, rate=0.05).gamma
        1.0
    """

    def __post_init__(self) -> None:
        self._check_types()
        self._check_choices()
        at_least = {
            "ways": 2, "shots": 1, "queries": 1, "steps": 1, "meta_batch": 1, "validate_every": 1,
            "validation_episodes": 2, "all_every": 0, "threads": 0, "seed": 0,
            "memory": 0, "updates": 1, "filters": 1, "warmup": 0, "select_step": 1,
            "patience": 1, "rows": 2, "prefetch": 0,
        }  # fmt: skip
        for option, least in at_least.items():
            value = getattr(self, option)
            if value is not None and value < least:
                raise FirststepError(f"`{option}` must be at least {least}, not {value}")
        at_most = {"seed": LARGEST_SEED, "threads": MOST_THREADS}
        for option, most in at_most.items():
            if getattr(self, option) > most:
                raise FirststepError(f"`{option}` must be at most {most}, not {getattr(self, option)}")
        for option in ("outer_rate", "rate", "gamma", "weight_decay", "clip_norm"):
            value = getattr(self, option)
            least_allowed = 0.0 if option in ("gamma", "weight_decay") else math.ulp(0.0)
            if value is not None and not least_allowed <= value < math.inf:
                raise FirststepError(f"`{option}` must be a positive number, not {value}")
        self._check_outer_loop()
        if self.log != RunningSettings.log:
            from firststep.training.loggers import chosen_loggers

            chosen_loggers(self.log)
        self._check_tasks()
        if self.residuals not in (None, "samples", "outputs"):
            raise unknown_value("residuals", str(self.residuals), ("samples", "outputs"))
        if self.network is not None:
            from firststep.backbones import check_spec

            check_spec(self.network)
            if self.filters is not None:
                raise FirststepError(f"`filters` goes with `backbone`, not with `network={self.network}`")
        elif self.pretrained is not None:
            raise FirststepError("`pretrained` goes with `network` timm:NAME or hf:NAME; `init` takes others")
        if self.compile and self.engine != "stepwise":
            raise FirststepError("`compile` works with `engine=stepwise` only")
        if self.precision is not None:
            try:
                _ = self.engine_options
            except ValueError as error:
                raise FirststepError(f"`precision`: {error}") from None

    def _check_choices(self) -> None:
        """Check values that differ from their defaults: only they need the registries, hence torch."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for option in _REGISTRIES:
            value = getattr(self, option)
            if value != defaults[option] and value not in (allowed := _allowed(option)):
                raise unknown_value(option, value, allowed)

    def _check_outer_loop(self) -> None:
        if self.weight_decay is not None and self.optimizer != "adamw":
            raise FirststepError(f"`weight_decay` goes with `optimizer=adamw`, not {self.optimizer}")
        if self.ema is not None and not 0 < self.ema < 1:
            raise FirststepError(f"`ema` must be between 0 and 1, such as 0.99, not {self.ema}")
        if self.warmup >= self.total_updates and self.warmup:
            raise FirststepError(f"`warmup={self.warmup}` must be less than `updates={self.total_updates}`")
        if self.select_step is not None and self.select_step > self.steps:
            raise FirststepError(
                f"`select_step={self.select_step}` must not exceed `steps={self.steps}`, which are validated"
            )

    def _check_tasks(self) -> None:
        if self.tasks is None:
            return
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for option in _OF_IMAGES:
            if getattr(self, option) != defaults[option]:
                raise FirststepError(f"`{option}` goes with images of classes, not with `tasks={self.tasks}`")
        if self.network is None and self.backbone != "mlp":
            raise FirststepError(
                f"`tasks={self.tasks}` needs `backbone=mlp`, or a `network` of your own, not {self.backbone}"
            )

    def _check_types(self) -> None:
        """Refuse values of another type, such as ``2.5`` steps from a file."""
        for field, annotation in typing.get_type_hints(TrainConfig).items():
            value = getattr(self, field)
            allowed = typing.get_args(annotation) or (annotation,)
            accepted = (*allowed, int) if float in allowed else allowed
            is_bool = isinstance(value, bool) and bool not in allowed
            if is_bool or not isinstance(value, accepted):
                words = " or ".join(
                    "nothing" if kind is types.NoneType else kind.__name__ for kind in allowed
                )
                raise FirststepError(f"`{field}` must be {words}, not {value!r}")

    @property
    def total_updates(self) -> int:
        """Return the number of meta-updates; the paper's is 60,000 for one shot and 40,000 for more."""
        if self.updates is not None:
            return self.updates
        return 60_000 if self.shots == 1 else 40_000

    @property
    def architecture(self) -> str:
        """Return the network's name in a form that suits a folder name."""
        return self.backbone if self.network is None else re.sub(r"[^\w.]+", "-", self.network).strip("-")

    @property
    def selected_step(self) -> int:
        """Return the inner step whose validation accuracy selects the best model."""
        return self.steps if self.select_step is None else self.select_step

    def is_finished(self, update: int, best_update: int) -> bool:
        """Return whether training ends after ``update``, given the update of the best validation so far."""
        if update >= self.total_updates:
            return True
        return self.patience is not None and update - best_update >= self.patience * self.validate_every

    @property
    def conditioning_loss(self) -> Conditioning | None:
        """Return the conditioning loss with its weight and parameters, or None."""
        if self.conditioning == "none" or self.gamma == 0:
            return None
        from firststep.metagradient import Conditioning

        return Conditioning(
            subset=self.subset,
            weight=self.gamma,
            loss=self.conditioning,
            residuals=self.residuals,  # type: ignore[arg-type]
            rows=self.rows,
        )

    @property
    def source(self) -> str:
        """Return the name of the dataset or of the task source."""
        return self.data if self.tasks is None else self.tasks

    @property
    def kind(self) -> Kind:
        """Return the kind of problem, which follows from the loss."""
        if self.loss == "cross_entropy":  # avoids importing torch
            return "classes"
        from firststep.losses import LOSSES

        return LOSSES[self.loss].kind

    @property
    def inner_moves(self) -> str | tuple[str, ...] | None:
        """Return the parameters that the inner loop changes; None for the method's own choice."""
        is_patterns = self.moves is not None and any(sign in self.moves for sign in "*?.,[")
        return tuple(part.strip() for part in self.moves.split(",")) if is_patterns else self.moves  # type: ignore[union-attr]

    @property
    def measured_subset(self) -> str:
        """Return the subset whose condition number is measured: the constrained one, else the classifier."""
        return "cls" if self.conditioning_loss is None else self.subset

    @property
    def method_label(self) -> str:
        """Return method, head and query weights for tables and plots, such as ``maml, shared head``."""
        label = self.method if self.head == "per-class" else f"{self.method}, {self.head} head"
        return label if self.query_weights is None else f"{label}, {self.query_weights} weights"

    @property
    def method_slug(self) -> str:
        """Return the method label as a folder name, such as ``maml-shared-head``."""
        return self.method_label.replace(", ", "-").replace(" ", "-")

    @property
    def engine_options(self) -> EngineOptions:
        """Return the engine's options."""
        from firststep.metagradient import EngineOptions

        memory = None if self.memory is None else self.memory * 2**20
        return EngineOptions(
            engine=self.engine, compile=self.compile, memory=memory, precision=self.precision
        )

    def describe(self) -> str:
        """Return a short label for tables and plots."""
        if self.conditioning_loss is None:
            return self.method_label
        is_usual = (self.subset, self.conditioning) == ("cls", "variance")
        extra = "" if is_usual else f" {self.subset} {self.conditioning}"
        if self.tasks is not None:  # task sources are compared by subset and weight
            extra = f" {self.subset} γ {self.gamma:g}"
        return f"{self.method_label} + conditioning{extra}"

    def to_json(self) -> dict[str, Any]:
        values = dataclasses.asdict(self)
        return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}

    def identity(self) -> dict[str, Any]:
        """Return the settings that names of folders are derived from.

        Fields of the first format always count, others only where they differ from their defaults.
        """
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return FORMER_FIELDS | {
            name: value
            for name, value in self.to_json().items()
            if name in FIRST_FIELDS or value != defaults[name]
        }

    @staticmethod
    def from_json(values: Any, where: str = "the configuration") -> TrainConfig:
        """Return the configuration that :meth:`to_json` stored; ``where`` names it in errors."""
        TrainConfig.refuse_unknown_fields(values, where)
        return to_record(values, TrainConfig, where)

    @staticmethod
    def refuse_unknown_fields(values: Any, where: str) -> None:
        """Refuse settings unknown to this version: they may have changed the result."""
        known = {field.name for field in dataclasses.fields(TrainConfig)}
        found = values.items() if isinstance(values, dict) else ()
        former = FORMER_FIELDS.items()
        unknown = sorted(name for name, value in found if name not in known and (name, value) not in former)
        if unknown:
            raise FirststepError(f"{where}: this version has no {', '.join(unknown)} in a configuration")


def unknown_value(option: str, value: str, allowed: Sequence[str]) -> FirststepError:
    near = difflib.get_close_matches(value, allowed, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return FirststepError(f"`{option}` {value} is unknown; {hint}choose from {', '.join(allowed)}")
