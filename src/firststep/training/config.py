"""Everything that decides a training run, typed, checked and written beside its results."""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firststep.backbones import BACKBONES, check_spec
from firststep.data import DATASETS
from firststep.errors import FirststepError
from firststep.metagradient import CONDITIONING_LOSSES, ENGINES, Conditioning
from firststep.methods import METHODS
from firststep.network import HEADS
from firststep.training.schedule import SCHEDULES
from firststep.utils import to_record

LARGEST_SEED = 2**63 - 1
MOST_THREADS = 1024
"""Far more crash PyTorch's pool of threads."""
ADDED_LATER = (
    *("head", "init", "optimizer", "weight_decay", "schedule", "warmup", "clip_norm", "ema"),
    *("select_step", "patience", "network", "pretrained", "freeze"),
)
"""Fields that runs of earlier versions do not have."""
OPTIMIZERS = ("adam", "adamw")


def choices() -> dict[str, tuple[str, ...]]:
    """What the fields with a fixed set of values may be; users can add to the registries at any time."""
    return {
        "data": tuple(DATASETS),
        "backbone": tuple(BACKBONES),
        "method": tuple(METHODS),
        "head": HEADS,
        "optimizer": OPTIMIZERS,
        "schedule": SCHEDULES,
        "conditioning": ("none", *CONDITIONING_LOSSES),
        "engine": ENGINES,
    }


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """A meta-training run. The defaults are the paper's protocol.

    Examples:
        >>> from firststep.training import TrainConfig
        >>> TrainConfig(filters=32, rate=0.05).gamma
        1.0
    """

    # What is learned from
    data: str = "glyphs"
    """glyphs (embedded), omniglot, cifar-fs, fc100, mini-imagenet, tiered-imagenet, cub or folder."""
    data_path: Path | None = None
    """Folder or archive that holds the dataset; not for glyphs."""
    image_size: int | None = None
    """Side of the images in pixels; the dataset's usual size if left out."""
    rotations: bool = False
    """omniglot: quarter turns as extra classes."""
    augment: bool = False
    """Random crops, flips (not of drawings) and colour jitter on training episodes."""
    partial: bool = False
    """Accept data that differs from the official classes and counts."""
    skip_broken: bool = False
    """Leave out images that cannot be decoded."""
    cache: Path | None = None
    """Folder for the image cache, instead of beside the data or the user's cache folder."""

    # The task
    ways: int = 5
    """Classes of a task."""
    shots: int = 5
    """Support images of each class."""
    queries: int = 16
    """Query images of each class."""

    # The model
    backbone: str = "conv4"
    """Network: conv4, conv6, resnet10, resnet18, efficientnet-lite0 (extra photos) or a registered one."""
    filters: int | None = None
    """Channels of each block of conv4 and conv6; 64 if left out."""
    network: str | None = None
    """Instead of `backbone`, a network from elsewhere that ends in a linear layer: package.module:NAME (a
    module, or a function that may take ways, image_size and channels), timm:NAME or hf:NAME."""
    pretrained: str | None = None
    """Weights for timm:NAME (default, or a file) or hf:NAME (default): with their own normalisation."""
    freeze: str | None = None
    """Parameters of the network that neither loop changes: names with wildcards, with commas between."""
    method: str = "maml"
    """Update rule of the inner loop; `firststep parameters` lists them."""
    head: str = "per-class"
    """How the classifier starts in a task: per-class (a learned row for each class), shared (one learned row
    for all, hence any number of classes) or zero (all rows 0, any number of classes)."""
    rate: float | None = None
    """Inner learning rate α; the method's own if left out (0.01 for maml)."""
    steps: int = 5
    """Inner steps K."""
    init: str | None = None
    """Start from these weights: folder of `firststep pretrain` or of a run, builtin:NAME, or a safetensors
    file of the network. The classifier starts anew where it is of another size."""

    # The conditioning term
    conditioning: str = "variance"
    """none, variance (of the log-eigenvalues: the paper's) or log-kappa (its ablation)."""
    subset: str = "cls"
    """Constrained parameters: cls, emb, ebn, a union such as cls+emb, or all."""
    gamma: float = 1.0
    """Weight γ of the conditioning loss."""

    # The outer loop
    updates: int | None = None
    """Meta-updates; the paper's 40,000 (60,000 for one shot) if left out."""
    meta_batch: int = 4
    """Tasks of a meta-update; their losses are summed."""
    outer_rate: float = 1e-3
    """Adam's learning rate."""
    optimizer: str = "adam"
    """adam, or adamw with decoupled weight decay."""
    weight_decay: float | None = None
    """Of adamw; 0.01 if left out."""
    schedule: str = "constant"
    """Of the outer rate: constant, or cosine (down to 0 at the last update)."""
    warmup: int = 0
    """Meta-updates over which the outer rate first rises linearly."""
    clip_norm: float | None = None
    """Scale a larger gradient of the outer loss down to this norm; never if left out."""
    ema: float | None = None
    """Decay of an exponential moving average of all weights, such as 0.99. It is validated beside the raw
    weights, and the better of the two is kept as the best model."""
    seed: int = 0
    """Decides the initial values and every episode."""

    # Validation and logs
    validate_every: int = 25
    """Meta-updates between validations, each with a checkpoint; the last update is always validated."""
    validation_episodes: int = 100
    """Fixed validation episodes; the model with the best accuracy on them is the one tested."""
    select_step: int | None = None
    """The inner step whose validation accuracy decides which model is the best; the last if left out."""
    patience: int | None = None
    """Stop after this many validations in a row without a better one; never if left out."""
    all_every: int = 0
    """Validations between measurements of the condition number of `all` parameters; 0 for never."""

    # The machine
    device: str = "auto"
    """cpu, cuda, cuda:1, ...; auto takes a GPU if there is one."""
    compile: bool = False
    """Compile the inner step and its backward pass: a minute or more at the start, faster from then on."""
    engine: str = "stepwise"
    """stepwise (memory does not grow with the steps) or unrolled (one graph, the reference)."""
    memory: int | None = None
    """MiB that inner steps may use to save results for the backward pass instead of computing them again
    (stepwise); up to five steps within 384 MiB if left out."""
    streams: int = 1
    """CUDA streams that the tasks of a meta-batch are spread over: faster for small networks on a GPU."""
    threads: int = 0
    """CPU threads; 0 leaves PyTorch's choice, or each process of torchrun an equal share of the cores."""

    def __post_init__(self) -> None:
        self._check_types()
        for option, allowed in choices().items():
            value = getattr(self, option)
            if value not in allowed:
                raise unknown_value(option, value, allowed)
        at_least = {
            "ways": 2, "shots": 1, "queries": 1, "steps": 1, "meta_batch": 1, "validate_every": 1,
            "validation_episodes": 2, "all_every": 0, "threads": 0, "seed": 0,
            "streams": 1, "memory": 0, "updates": 1, "filters": 1, "warmup": 0, "select_step": 1,
            "patience": 1,
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
        if self.network is not None:
            check_spec(self.network)
            if self.filters is not None:
                raise FirststepError(f"`filters` goes with `backbone`, not with `network={self.network}`")
        elif self.pretrained is not None:
            raise FirststepError("`pretrained` goes with `network` timm:NAME or hf:NAME; `init` takes others")
        if self.compile and self.engine != "stepwise":
            raise FirststepError("`compile` works with `engine=stepwise` only")

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

    def _check_types(self) -> None:
        """A file may say ``2.5`` steps or ``true`` queries: Python would compute with them."""
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
        """The paper trains 60,000 meta-updates for one shot and 40,000 for more."""
        if self.updates is not None:
            return self.updates
        return 60_000 if self.shots == 1 else 40_000

    @property
    def architecture(self) -> str:
        """The network's name, fit for the name of a folder."""
        return self.backbone if self.network is None else re.sub(r"[^\w.]+", "-", self.network).strip("-")

    @property
    def selected_step(self) -> int:
        """The inner step that chooses the best model."""
        return self.steps if self.select_step is None else self.select_step

    def is_finished(self, update: int, best_update: int) -> bool:
        """Whether a training ends after ``update``, with the best validation so far at ``best_update``."""
        if update >= self.total_updates:
            return True
        return self.patience is not None and update - best_update >= self.patience * self.validate_every

    @property
    def term(self) -> Conditioning | None:
        """The conditioning term of the outer loss."""
        if self.conditioning == "none" or self.gamma == 0:
            return None
        return Conditioning(subset=self.subset, weight=self.gamma, loss=self.conditioning)

    def describe(self) -> str:
        """A few words for tables and plots."""
        method = self.method if self.head == "per-class" else f"{self.method}, {self.head} head"
        if self.term is None:
            return method
        extra = (
            ""
            if (self.subset, self.conditioning) == ("cls", "variance")
            else f" {self.subset} {self.conditioning}"
        )
        return f"{method} + conditioning{extra}"

    def to_json(self) -> dict[str, Any]:
        values = dataclasses.asdict(self)
        return {name: str(value) if isinstance(value, Path) else value for name, value in values.items()}

    def identity(self) -> dict[str, Any]:
        """What names of folders are derived from: a field that was added later counts where it is not at its
        default, so that the names from before stay."""
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return {
            name: value
            for name, value in self.to_json().items()
            if name not in ADDED_LATER or value != defaults[name]
        }

    @staticmethod
    def from_json(values: Any, where: str = "the configuration") -> TrainConfig:
        """What :meth:`to_json` gave; ``where`` is what an error calls it."""
        TrainConfig.refuse_unknown_fields(values, where)
        return to_record(values, TrainConfig, where)

    @staticmethod
    def refuse_unknown_fields(values: Any, where: str) -> None:
        """A setting that this version does not have might have changed the result."""
        known = {field.name for field in dataclasses.fields(TrainConfig)}
        unknown = sorted(set(values) - known) if isinstance(values, dict) else []
        if unknown:
            raise FirststepError(f"{where}: this version has no {', '.join(unknown)} in a configuration")


def unknown_value(option: str, value: str, allowed: Sequence[str]) -> FirststepError:
    near = difflib.get_close_matches(value, allowed, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return FirststepError(f"`{option}` {value} is unknown; {hint}choose from {', '.join(allowed)}")
