"""The settings of a training run by subject: pure data, which :class:`TrainConfig` joins and checks.

``firststep train --help`` shows a group for each class, in the order of the fields: common ones come first.
Nothing slow is imported here, so that the help does not wait for torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """The images, and the tasks that are drawn from them."""

    data: str = "glyphs"
    """Name of the dataset, as in ``firststep.data.DATASETS``."""
    data_path: Path | None = None
    """Folder or archive that holds the dataset; not for glyphs."""
    ways: int = 5
    """Classes of a task."""
    shots: int = 5
    """Support images of each class."""
    queries: int = 16
    """Query images of each class."""
    image_size: int | None = None
    """Side of the images in pixels; the dataset's usual size if left out."""
    augment: bool = False
    """Random crops, flips (not of drawings) and colour jitter on training episodes."""
    rotations: bool = False
    """omniglot: quarter turns as extra classes."""
    partial: bool = False
    """Accept data that differs from the official classes and counts."""
    skip_broken: bool = False
    """Leave out images that cannot be decoded."""
    cache: Path | None = None
    """Folder for the image cache, instead of beside the data or the user's cache folder."""


@dataclass(frozen=True, kw_only=True)
class TaskSettings(DataSettings):
    """The images or another source, and the tasks that are drawn from them."""

    tasks: str | None = None
    """Instead of `data`, a source of tasks: sinusoid, or package.module:FUNCTION, which takes a numpy
    generator (and shots, queries, split if it has such parameters) and returns (support_x, support_y,
    query_x, query_y)."""


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """The network, and the weights that it starts from."""

    backbone: str = "conv4"
    """Name of the network, as in ``firststep.BACKBONES``."""
    filters: int | None = None
    """Channels of each block of conv4 and conv6; 64 if left out. Units of each hidden layer of mlp; 64 for
    images and 40 for tasks if left out."""
    init: str | None = None
    """Start from these weights: folder of `firststep pretrain` or of a run, builtin:NAME, or a safetensors
    file of the network. The classifier starts anew where it is of another size."""
    network: str | None = None
    """Instead of `backbone`, a network from elsewhere that ends in a linear layer: package.module:NAME (a
    module, or a function that may take ways, image_size and channels), timm:NAME or hf:NAME."""
    pretrained: str | None = None
    """Weights for timm:NAME (default, or a file) or hf:NAME (default): with their own normalisation."""
    freeze: str | None = None
    """Parameters of the network that neither loop changes: names with wildcards, with commas between."""


@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    """The inner loop and the conditioning loss."""

    method: str = "maml"
    """Update rule of the inner loop; `firststep parameters` lists them."""
    head: str = "per-class"
    """How the classifier starts in a task: per-class (a learned row for each class), shared (one learned row
    for all, hence any number of classes) or zero (all rows 0, any number of classes)."""
    conditioning: str = "variance"
    """none, variance (of the log-eigenvalues: the paper's) or log-kappa (its ablation)."""
    rate: float | None = None
    """Inner learning rate α; the method's own if left out (0.01 for maml)."""
    steps: int = 5
    """Inner steps K."""
    query_weights: str | None = None
    """Weights of the query losses after steps 1..K in the outer loss: last (only the last step counts), equal
    (every step counts the same), or annealed (equal at first, only the last after a tenth of the updates).
    The method's own if left out: annealed for maml++, last for all others."""
    gamma: float = 1.0
    """Weight γ of the conditioning loss."""
    subset: str = "cls"
    """Constrained parameters: cls, emb, ebn, a union such as cls+emb, or all."""
    loss: str = "cross_entropy"
    """Loss per sample, as in ``firststep.LOSSES``: cross_entropy for classes, squared_error for numbers."""
    moves: str | None = None
    """Parameters that the inner loop changes: a subset such as cls+emb, or names with wildcards, with commas
    between; the method's own if left out."""
    residuals: str | None = None
    """What the conditioning loss takes as residuals: samples, or outputs (squared_error; its default)."""
    rows: int | None = None
    """Samples whose residuals count in the conditioning loss, drawn at random; all if left out."""


@dataclass(frozen=True, kw_only=True)
class OuterLoopSettings:
    """Meta-updates, and the validations that choose the best model."""

    updates: int | None = None
    """Meta-updates; the paper's 40,000 (60,000 for one shot) if left out."""
    seed: int = 0
    """Decides the initial values and every episode."""
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
    validate_every: int = 25
    """Meta-updates between validations, each with a checkpoint; the last update is always validated."""
    validation_episodes: int = 100
    """Fixed validation episodes; the model with the best accuracy on them is the one tested."""
    select_step: int | None = None
    """The inner step whose validation accuracy decides which model is the best; the last if left out."""
    patience: int | None = None
    """Stop after this many validations in a row without a better one; never if left out."""


@dataclass(frozen=True, kw_only=True)
class RunningSettings:
    """The machine, its memory and speed."""

    device: str = "auto"
    """cpu, cuda, cuda:1, ...; auto takes a GPU if there is one."""
    threads: int = 0
    """CPU threads; 0 leaves PyTorch's choice, or each process of torchrun an equal share of the cores."""
    compile: bool = False
    """Compile the inner step and its backward pass: a minute or more at the start, faster from then on."""
    engine: str = "stepwise"
    """stepwise (memory does not grow with the steps) or unrolled (one graph, the reference)."""
    memory: int | None = None
    """MiB that inner steps may use to save results for the backward pass instead of computing them again
    (stepwise); up to five steps within 384 MiB if left out."""
    log: str = "tensorboard"
    """Loggers beside metrics.jsonl, with commas between: tensorboard, csv, wandb, mlflow, names that a module
    of your own registers, or none."""
    all_every: int = 0
    """Validations between measurements of the condition number of `all` parameters; 0 for never."""


FIRST_FIELDS = frozenset(
    (
        *("data", "data_path", "image_size", "augment", "rotations", "partial", "skip_broken", "cache"),
        *("ways", "shots", "queries", "backbone", "filters", "method", "rate", "steps"),
        *("conditioning", "gamma", "subset", "updates", "seed", "meta_batch", "outer_rate"),
        *("validate_every", "validation_episodes", "all_every"),
        *("device", "threads", "compile", "engine", "memory"),
    )
)
"""Fields of the first format: they always count in the name of a run. Never change this list. Any other field
counts only where it differs from its default, so a new field renames no run."""
FORMER_FIELDS = {"streams": 1}
"""Removed fields with the default that they had. A stored configuration may have a removed field with this
value. The value still counts in the names of runs, which were derived from it."""
