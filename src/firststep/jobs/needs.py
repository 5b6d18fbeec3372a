"""What a run takes of a machine: CPUs, GPUs and memory, estimated from its configuration.

The memory is that of a task at its peak. The terms, with A the values that a picture leaves in the network
(the outputs of all its layers) and P the learned parameters:

- the query loss keeps what its pictures computed for the way back;
- a step of second order keeps what the support pictures computed forwards and backwards. The stepwise engine
  has one step at a time, when the query's is gone; the unrolled engine has all K, while the query's is there;
- the conditioning of more than the classifier pulls back one row for each support picture, in blocks of a
  bounded size;
- parameters, their gradients, Adam's moments and the K+1 stages of a trajectory.

The factors are fits to peaks measured on the CPU; tests/fleet/test_needs.py holds them against a real run.
It is an estimate: a job that needs more than a machine has is started alone rather than refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from firststep.backbones import build_backbone
from firststep.data.registry import entry
from firststep.errors import FirststepError
from firststep.rules import build_method, count_parameters
from firststep.training import TrainConfig

BYTES = 4  # of a float32
PYTORCH = 400 << 20  # a process that has imported PyTorch and opened its data, before it computes
COMPILER = 800 << 20  # compiling, with the C++ compiler's own processes: a bound, not a measurement
CUDA = 3 << 30  # of the host, for a run on a GPU: CUDA's libraries and buffers; a bound, not a measurement
QUERY_VALUES = 3.0  # × A: kept by the query loss, with the temporaries of its way back
STEP_VALUES = 2.5  # × A: kept by a step of second order
PULL_BACK_VALUES = 6.5  # × A: the temporaries of its pull-back
JACOBIAN = {"all": 1 << 30, "body": 1 << 30, "emb": 256 << 20, "ebn": 256 << 20, "cls": 0}
COPIES = 10  # of the parameters, besides the stages: gradients, moments, cotangents, sums


@dataclass(frozen=True, kw_only=True)
class Needs:
    cpus: int
    gpus: int
    memory_bytes: int
    """Of the host; a GPU has one run at a time, with all of its own memory."""


def needs(config: TrainConfig, *, gpu: bool | None = None) -> Needs:
    """What a run of this configuration takes.

    Args:
        config: the run. One that leaves its threads open (0) counts as one CPU.
        gpu: whether ``device="auto"`` finds a GPU where the run will be; default whether there is one here.
    """
    if config.device == "auto":
        on_gpu = torch.cuda.is_available() if gpu is None else gpu
    else:
        try:
            on_gpu = torch.device(config.device).type == "cuda"
        except RuntimeError:
            raise FirststepError(f"--device {config.device} is not a device; try cpu or cuda") from None
    try:
        memory = CUDA if on_gpu else _memory(config)
    except ValueError as error:  # a network or method that cannot be built
        raise FirststepError(str(error)) from None
    return Needs(cpus=max(1, config.threads), gpus=int(on_gpu), memory_bytes=memory)


@lru_cache(maxsize=1024)
def _memory(config: TrainConfig) -> int:
    facts = entry(config.data)
    size, channels = config.image_size or facts.image_size, facts.channels
    network = build_backbone(
        config.backbone, ways=config.ways, image_size=size, channels=channels, filters=config.filters
    )
    method = build_method(config.method, rate=config.rate, steps=config.steps)
    parameters = count_parameters(method, network).total
    values = _values_per_picture(method.prepare(network, None), channels, size)
    query = QUERY_VALUES * values * config.ways * config.queries
    step = STEP_VALUES * values * config.ways * config.shots
    pull_back = PULL_BACK_VALUES * values * config.ways * config.shots
    unrolled = config.engine == "unrolled"
    computed = config.steps * step + max(query, pull_back) if unrolled else max(query, step + pull_back)
    learned = parameters * (COPIES + config.steps + 1)
    subset = config.subset if config.term is not None else "cls"
    jacobian = max(JACOBIAN.get(part.strip(), 0) for part in subset.split("+"))
    return int(PYTORCH + COMPILER * config.compile + jacobian + BYTES * (computed + learned))


def _values_per_picture(network: nn.Module, channels: int, size: int) -> int:
    """The values that all layers put out for a picture."""
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
