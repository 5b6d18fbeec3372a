"""Estimate the CPUs, GPUs and memory of a run from its configuration.

The memory is the peak of one task. Let A be the number of outputs of all layers for one image. The parts are:

- the activations of the query images, which the query loss saves for its backward pass;
- the activations of the support images, forward and backward, per saved step of second order. The stepwise
  engine holds :func:`saved_steps` steps during the query loss, and at least one during the pull-back. The
  unrolled engine holds all K;
- the Jacobian of the conditioning loss beyond the classifier, one row per support image, in bounded blocks;
- parameters, their gradients, Adam's moments and the K+1 parameter sets of a trajectory.

The factors are fits to peaks measured on the CPU; tests/jobs/test_resources.py compares them with real runs.
A job whose estimate exceeds the machine's memory is started alone rather than refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from firststep.backbones import build_backbone
from firststep.data import get_dataset_info
from firststep.errors import FirststepError
from firststep.metagradient import DEFAULT_MEMORY, MOST_SAVED
from firststep.methods import build_method, count_parameters
from firststep.training import TrainConfig

BYTES = 4  # of a float32
PYTORCH = 400 << 20  # a process that has imported PyTorch and opened its data, before it computes
COMPILER = 800 << 20  # compiling, with the C++ compiler's own processes: a bound, not a measurement
CUDA = 3 << 30  # of the host, for a run on a GPU: CUDA's libraries and buffers; a bound, not a measurement
QUERY_VALUES = 3.5  # × A: saved by the query loss, with the temporaries of its backward pass
STEP_VALUES = 2.5  # × A: saved by a step of second order
PULL_BACK_VALUES = 6.5  # × A: the temporaries of its pull-back
JACOBIAN = {"all": 1 << 30, "body": 1 << 30, "emb": 256 << 20, "ebn": 256 << 20, "cls": 0}
UNKNOWN_NETWORK = 4 << 30  # a network from elsewhere, whose layers are not known here: a bound
COPIES = 10  # of the parameters, besides those of the trajectory: gradients, moments, cotangents, sums


@dataclass(frozen=True, kw_only=True)
class ResourceEstimate:
    """CPUs, GPUs and bytes of memory that a run needs.

    Examples:
        >>> from firststep.jobs import ResourceEstimate
        >>> ResourceEstimate(cpus=1, gpus=0, memory_bytes=2**30).memory_bytes
        1073741824
    """

    cpus: int
    gpus: int
    memory_bytes: int
    """Memory of the host; a GPU takes one run at a time, with all of its own memory."""


def estimate_resources(config: TrainConfig, *, gpu: bool | None = None) -> ResourceEstimate:
    """Return the resources that a run of this configuration needs.

    Args:
        config: the run. One that does not set its threads (0) counts as one CPU.
        gpu: whether ``device="auto"`` finds a GPU where the run will be; default whether there is one here.

    Examples:
        >>> from firststep.jobs import estimate_resources
        >>> estimate_resources(run.config, gpu=False).cpus
        1
    """
    if config.device == "auto":
        on_gpu = torch.cuda.is_available() if gpu is None else gpu
    else:
        try:
            on_gpu = torch.device(config.device).type == "cuda"
        except RuntimeError:
            raise FirststepError(f"`device={config.device}` is not a device; try cpu or cuda") from None
    try:
        memory = CUDA if on_gpu else _memory(config)
    except ValueError as error:  # a network or method that cannot be built
        raise FirststepError(str(error)) from None
    return ResourceEstimate(cpus=max(1, config.threads), gpus=int(on_gpu), memory_bytes=memory)


def saved_steps(config: TrainConfig, step_bytes: float) -> int:
    """Return the number of inner steps whose activations are in memory during the query loss."""
    if config.engine == "unrolled":
        return config.steps
    if config.memory is None:
        return min(config.steps, MOST_SAVED, int(DEFAULT_MEMORY // step_bytes))
    return min(config.steps, int(config.memory * 2**20 // step_bytes))


@lru_cache(maxsize=1024)
def _memory(config: TrainConfig) -> int:
    if config.tasks is not None:
        return UNKNOWN_NETWORK if config.network is not None else PYTORCH + JACOBIAN["emb"]
    facts = get_dataset_info(config.data)
    size, channels = config.image_size or facts.image_size, facts.channels
    if config.network is not None:
        return UNKNOWN_NETWORK
    network = build_backbone(
        config.backbone, ways=config.ways, image_size=size, channels=channels, filters=config.filters
    )
    method = build_method(config.method, rate=config.rate, steps=config.steps)
    parameters = BYTES * count_parameters(method, network, config.head).total
    image = BYTES * _values_per_image(method.prepare(network, None), channels, size)
    support = image * config.ways * config.shots
    query = QUERY_VALUES * image * config.ways * config.queries
    step, pull_back = STEP_VALUES * support, PULL_BACK_VALUES * support
    saved = saved_steps(config, step)
    computed = max(saved * step + query, max(1, saved) * step + pull_back)
    learned = parameters * (COPIES + config.steps + 1)
    subset = config.measured_subset
    jacobian = max(JACOBIAN.get(part.strip(), 0) for part in subset.split("+"))
    return int(PYTORCH + COMPILER * config.compile + jacobian + computed + learned)


def _values_per_image(network: nn.Module, channels: int, size: int) -> int:
    """Return the number of outputs of all layers for one image."""
    count = 0

    def add(_module: nn.Module, _inputs: object, output: Tensor) -> None:
        nonlocal count
        count += output.numel()

    network = network.to("meta")  # shapes alone: nothing is computed
    for part in network.modules():
        if not list(part.children()):
            part.register_forward_hook(add)
    network(torch.empty(1, channels, size, size, device="meta"))
    return count
