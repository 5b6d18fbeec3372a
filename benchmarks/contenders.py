"""One meta-gradient of one task, by firststep and by its peers: the same network, task and loss."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep import (
    Conditioning,
    Task,
    build_backbone,
    cross_entropy_residuals,
    log_eigenvalue_variance,
    maml,
)
from firststep.backbones import BatchStatisticsNorm
from firststep.functional import EngineOptions, FunctionalModule, MetaGradient

RATE = 0.01
Gradient = dict[str, Tensor]
Compute = Callable[[], Gradient]

# name: (network, its options, image size, channels)
NETWORKS: dict[str, tuple[str, dict[str, int], int, int]] = {
    "Conv4-64, 84 px": ("conv4", {"filters": 64}, 84, 3),
    "Conv4-64, 32 px": ("conv4", {"filters": 64}, 32, 3),
    "Conv4-32, 28 px": ("conv4", {"filters": 32}, 28, 1),
    "ResNet10, 84 px": ("resnet10", {}, 84, 3),
    "ResNet18, 84 px": ("resnet18", {}, 84, 3),
}


def model_and_task(network: str) -> tuple[FunctionalModule, Task]:
    """Return a network and a 5-way 5-shot task of noise, with 16 queries a class."""
    name, options, size, channels = NETWORKS[network]
    model = FunctionalModule(build_backbone(name, image_size=size, channels=channels, **options))
    source = torch.Generator().manual_seed(0)

    def images(count: int) -> Tensor:
        return torch.randn(count, channels, size, size, generator=source)

    classes = torch.arange(5)
    task = Task(images(25), classes.repeat_interleave(5), images(80), classes.repeat_interleave(16))
    return model, task


def in_float64(network: str, steps: int, subset: str | None = None, compile: bool = False) -> Compute:
    """Return the reference gradient in float64, step by step to bound its memory."""
    model, task = model_and_task(network)
    conditioning = None if subset is None else Conditioning(subset=subset)
    model.module.double()
    task = Task(task.support_x.double(), task.support_y, task.query_x.double(), task.query_y)
    compute = MetaGradient(
        model,
        maml(RATE),
        steps=steps,
        conditioning=conditioning,
        options=EngineOptions(memory=0, compile=compile),
    )
    return lambda: compute(model.params(), {}, [task]).params


def firststep(
    network: str, steps: int, subset: str | None = None, tasks: int = 1, **options: bool | int | torch.dtype
) -> Compute:
    """Return our gradient: the mean over a meta-batch of ``tasks`` equal tasks."""
    model, task = model_and_task(network)
    conditioning = None if subset is None else Conditioning(subset=subset)
    compute = MetaGradient(
        model, maml(RATE), steps=steps, conditioning=conditioning, options=EngineOptions(**options)
    )  # type: ignore[arg-type]
    params = model.params()

    def mean() -> Gradient:
        total = compute(params, {}, [task] * tasks).params
        return {name: value / tasks for name, value in total.items()}

    return mean


def use_torch_norm(module: nn.Module) -> None:
    """Replace our batch norm, whose derivatives are written by hand, by torch's; keep the parameters."""
    for parent in list(module.modules()):
        for name, child in parent.named_children():
            if isinstance(child, BatchStatisticsNorm):
                norm = nn.BatchNorm2d(len(child.weight), child.eps, track_running_stats=False)
                norm.weight, norm.bias = child.weight, child.bias
                setattr(parent, name, norm)


def plain(network: str, steps: int, subset: str | None = None, *, torch_norm: bool = False) -> Compute:
    """Return the gradient by one autograd graph; conditioning by a loop over the samples."""
    model, task = model_and_task(network)
    if torch_norm:
        use_torch_norm(model.module)
    module, start = model.module, model.params()
    psi = model.subset(subset) if subset else ()

    def compute() -> Gradient:
        theta = {name: value.detach().clone().requires_grad_() for name, value in start.items()}
        initial = list(theta.values())
        conditioning_loss = torch.zeros((), dtype=torch.float64)
        for _ in range(steps):
            logits = torch.func.functional_call(module, theta, (task.support_x,))
            loss = F.cross_entropy(logits, task.support_y)
            if psi:
                residuals = cross_entropy_residuals(logits, task.support_y)
                constrained = [theta[name] for name in psi]
                rows = [torch.autograd.grad(one, constrained, create_graph=True) for one in residuals]
                jacobian = torch.stack([torch.cat([part.flatten() for part in row]) for row in rows]).double()
                conditioning_loss = conditioning_loss + log_eigenvalue_variance(jacobian @ jacobian.T) / steps
            grads = torch.autograd.grad(loss, list(theta.values()), create_graph=True)
            theta = {n: v - RATE * g for (n, v), g in zip(theta.items(), grads, strict=True)}
        logits = torch.func.functional_call(module, theta, (task.query_x,))
        query = F.cross_entropy(logits, task.query_y)
        return dict(zip(start, torch.autograd.grad(query + conditioning_loss, initial), strict=True))

    return compute


def with_higher(network: str, steps: int) -> Compute:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import higher
    model, task = model_and_task(network)
    module = model.module
    optimiser = torch.optim.SGD(module.parameters(), lr=RATE)

    def compute() -> Gradient:
        with higher.innerloop_ctx(module, optimiser, copy_initial_weights=False) as (fast, inner):
            for _ in range(steps):
                inner.step(F.cross_entropy(fast(task.support_x), task.support_y))
            query = F.cross_entropy(fast(task.query_x), task.query_y)
            grads = torch.autograd.grad(query, list(module.parameters()))
        return dict(zip(dict(module.named_parameters()), grads, strict=True))

    return compute


def with_torchopt(network: str, steps: int) -> Compute:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torchopt
    model, task = model_and_task(network)
    module, start = model.module, model.params()
    optimiser = torchopt.sgd(lr=RATE)

    def compute() -> Gradient:
        theta = {name: value.detach().clone().requires_grad_() for name, value in start.items()}
        initial = list(theta.values())
        state = optimiser.init(theta)
        for _ in range(steps):
            logits = torch.func.functional_call(module, theta, (task.support_x,))
            loss = F.cross_entropy(logits, task.support_y)
            grads = torch.autograd.grad(loss, list(theta.values()), create_graph=True)
            updates, state = optimiser.update(dict(zip(theta, grads, strict=True)), state, inplace=False)
            theta = torchopt.apply_updates(theta, updates, inplace=False)
        logits = torch.func.functional_call(module, theta, (task.query_x,))
        return dict(
            zip(start, torch.autograd.grad(F.cross_entropy(logits, task.query_y), initial), strict=True)
        )

    return compute


def with_jax(network: str, steps: int, remat: bool = False) -> Compute:
    from jax_peer import jax_gradient

    return jax_gradient(*model_and_task(network), steps, RATE, remat)


FOUR = "firststep, four tasks, per task"
TASKS = {FOUR: 4}
"""Contenders whose seconds are those of several tasks."""

ROUNDED = "firststep, saved as bfloat16"
"""The one contender that is not exact."""

ALL_KEPT = 2**40  # bytes: every step keeps what it computed

FLOAT64 = "float64"

CONTENDERS: dict[str, Callable[[str, int], Compute]] = {
    "firststep": lambda network, steps: firststep(network, steps, compile=True),
    FOUR: lambda network, steps: firststep(network, steps, tasks=TASKS[FOUR], compile=True),
    ROUNDED: lambda network, steps: firststep(network, steps, compile=True, saved_dtype=torch.bfloat16),
    "firststep + cls": lambda network, steps: firststep(network, steps, "cls", compile=True),
    "firststep + emb": lambda network, steps: firststep(network, steps, "emb", compile=True),
    "firststep + all": lambda network, steps: firststep(network, steps, "all", compile=True),
    "firststep eager": lambda network, steps: firststep(network, steps, memory=ALL_KEPT),
    "firststep eager, nothing kept": lambda network, steps: firststep(network, steps, memory=0),
    "firststep eager + cls": lambda network, steps: firststep(network, steps, "cls"),
    "firststep eager + emb": lambda network, steps: firststep(network, steps, "emb"),
    "firststep eager + all": lambda network, steps: firststep(network, steps, "all"),
    "higher": with_higher,
    "torchopt": with_torchopt,
    "JAX, jit": with_jax,
    "JAX, jit, scan with remat": lambda network, steps: with_jax(network, steps, remat=True),
    "plain autograd": plain,
    "plain autograd, torch's batch norm": lambda network, steps: plain(network, steps, torch_norm=True),
    "plain autograd, loop + cls": lambda network, steps: plain(network, steps, "cls"),
    "plain autograd, loop + emb": lambda network, steps: plain(network, steps, "emb"),
    "plain autograd, loop + all": lambda network, steps: plain(network, steps, "all"),
}
"""The part after a plus sign is the constrained parameter subset."""


def _double(subset: str | None, compile: bool) -> Callable[[str, int], Compute]:
    return lambda network, steps: in_float64(network, steps, subset, compile)


for _subset in ("", "cls", "emb", "all"):
    _plus = f" + {_subset}" if _subset else ""
    CONTENDERS[f"{FLOAT64}{_plus}"] = _double(_subset or None, False)
    CONTENDERS[f"{FLOAT64}, compiled{_plus}"] = _double(_subset or None, True)

FREED_KEPT = ", freed memory kept"
"""After a name: in a process whose C library keeps freed memory, as `firststep train` has it set."""
