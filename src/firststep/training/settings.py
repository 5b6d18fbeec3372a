"""The settings of a training run by subject: plain data that :class:`TrainConfig` joins and checks.

``firststep train --help`` shows one group per class, in the order of the fields: common ones come first.
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
    """Number of classes per task."""
    shots: int = 5
    """Number of support images per class."""
    queries: int = 16
    """Number of query images per class."""
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
    """Folder for the image cache; beside the data or in the user's cache folder if left out."""


@dataclass(frozen=True, kw_only=True)
class TaskSettings(DataSettings):
    """The images or another source, and the tasks that are drawn from them."""

    tasks: str | None = None
    """A source of tasks instead of `data`: sinusoid, or package.module:FUNCTION. The function takes a numpy
    generator (and shots, queries, split if it has such parameters) and returns (support_x, support_y,
    query_x, query_y)."""


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """The network, and the weights that it starts from."""

    backbone: str = "conv4"
    """Name of the network, as in ``firststep.BACKBONES``."""
    filters: int | None = None
    """Channels per block of conv4 and conv6; 64 if left out. Units per hidden layer of mlp; 64 for images and
    40 for tasks if left out."""
    init: str | None = None
    """Initial weights: folder of `firststep pretrain` or of a run, builtin:NAME, or a safetensors file of the
    network. A classifier of another size keeps its own initial values."""
    network: str | None = None
    """A network of your own instead of `backbone`, with a linear last layer: package.module:NAME (a module,
    or a function that may take ways, image_size and channels), timm:NAME or hf:NAME."""
    pretrained: str | None = None
    """Weights for timm:NAME or hf:NAME: default, or a file; with their own normalisation."""
    freeze: str | None = None
    """Parameters of the network that stay fixed in both loops: comma-separated names with wildcards."""


@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    """The inner loop and the conditioning loss."""

    method: str = "maml"
    """Update rule of the inner loop; `firststep parameters` lists them."""
    head: str = "per-class"
    """Initial classifier of a task: per-class (one learned row per class), shared (one learned row for all
    classes), zero (all rows 0) or prototypes (from the means of the support features). The last three take
    any number of classes."""
    conditioning: str = "variance"
    """Conditioning loss: none, variance (of the log-eigenvalues: the paper's) or log-kappa (its ablation)."""
    rate: float | None = None
    """Inner learning rate α; the method's own if left out (0.01 for maml)."""
    steps: int = 5
    """Number of inner steps K."""
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
    """Parameters that the inner loop changes: a subset such as cls+emb, or comma-separated names with
    wildcards; the method's own if left out."""
    residuals: str | None = None
    """Residuals of the conditioning loss: samples, or outputs (squared_error; its default)."""
    rows: int | None = None
    """Number of random samples whose residuals enter the conditioning loss; all if left out."""


@dataclass(frozen=True, kw_only=True)
class OuterLoopSettings:
    """The meta-updates, and the validations that choose the best model."""

    updates: int | None = None
    """Number of meta-updates; the paper's 40,000 (60,000 for one shot) if left out."""
    seed: int = 0
    """Seed of the initial values and of all episodes."""
    meta_batch: int = 4
    """Number of tasks per meta-update; their losses are summed."""
    outer_rate: float = 1e-3
    """Adam's learning rate."""
    optimizer: str = "adam"
    """Optimiser: adam, or adamw with decoupled weight decay."""
    weight_decay: float | None = None
    """Weight decay of adamw; 0.01 if left out."""
    schedule: str = "constant"
    """Schedule of the outer rate: constant, or cosine (down to 0 at the last update)."""
    warmup: int = 0
    """Number of first meta-updates over which the outer rate rises linearly."""
    clip_norm: float | None = None
    """Largest norm of the outer gradient; a larger gradient is scaled down. No limit if left out."""
    ema: float | None = None
    """Decay of an exponential moving average of all weights, such as 0.99. It is validated beside the raw
    weights; the better of the two is kept as the best model."""
    validate_every: int = 25
    """Number of meta-updates between validations with checkpoints; the last update is validated too."""
    validation_episodes: int = 100
    """Number of fixed validation episodes; the model with the best accuracy on them is tested."""
    select_step: int | None = None
    """Inner step whose validation accuracy selects the best model; the last if left out."""
    patience: int | None = None
    """Stop after this number of validations in a row without improvement; never if left out."""


@dataclass(frozen=True, kw_only=True)
class RunningSettings:
    """The machine, its memory and speed."""

    device: str = "auto"
    """Device: cpu, cuda, cuda:1, ...; auto takes a GPU if there is one."""
    threads: int = 0
    """Number of CPU threads; 0 leaves PyTorch's choice, or an equal share of the cores under torchrun."""
    compile: bool = False
    """Compile the inner step and its backward pass: a minute or more at the start, faster from then on."""
    engine: str = "stepwise"
    """Engine: stepwise (memory does not grow with the steps) or unrolled (one graph, the reference)."""
    memory: int | None = None
    """Memory budget in MiB for results that inner steps keep for the backward pass instead of recomputing
    them (stepwise); up to five steps within 384 MiB if left out."""
    precision: str | None = None
    """bf16 runs the network in bfloat16: faster on some processors, with an error in the gradient."""
    prefetch: int | None = None
    """Tasks that a thread prepares ahead; a meta-batch on a GPU and none on a CPU if left out."""
    data_on_device: bool = False
    """Hold all images on the device, as float32, instead of sending those of each task."""
    log: str = "tensorboard"
    """Loggers beside metrics.jsonl, comma-separated: tensorboard, csv, wandb, mlflow, names that a module of
    your own registers, or none."""
    all_every: int = 0
    """Number of validations between measurements of the condition number of `all` parameters; 0 for never."""


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
