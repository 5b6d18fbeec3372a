"""Check a machine: every engine's meta-gradient against a slow reference, then speed and memory.

The reference is plain autograd through all steps in float64 on the CPU, with a dense Jacobian. It uses none
of our engines. An engine that agrees with it on a device computes rightly there.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from firststep.backbones import build_backbone
from firststep.conditioning import condition_number, has_float64
from firststep.meta_learner import MetaLearner
from firststep.metagradient import Conditioning
from firststep.network import networks_in
from firststep.rules import maml
from firststep.task import Task
from firststep.training import collect_provenance

WAYS, SHOTS, QUERIES, STEPS, RATE = 5, 5, 15, 2, 0.05
IMAGE_SIZE, FILTERS = 28, 32
TOLERANCE = {"float64": 1e-8, "float32": 1e-2}
"""Largest relative error of a gradient. In float32, pooling may take the other pixel of a near tie, which
changes a gradient of noise by up to a per cent."""
SPECTRUM_TOLERANCE = 1e-2
BFLOAT16_TOLERANCE = 1e-1
REPEATS = 5
CONTENDERS: dict[str, dict[str, Any] | None] = {
    "plain autograd": None,
    "stepwise": {},
    "compiled": {"compile": True},
}
"""Name → options of our engine; None for the reference itself, in float32."""
Gradient = dict[str, Tensor]


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    found: str
    wanted: str
    passed: bool


@dataclass(frozen=True, kw_only=True)
class MachineReport:
    """The checks and measurements of a machine; attach :meth:`to_json` to an issue."""

    machine: dict[str, Any]
    device: str
    checks: list[Check] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    """Median seconds per task, by contender; ``first call, compiled`` includes the compilation."""
    megabytes: dict[str, float] = field(default_factory=dict)
    """Peak memory that a contender adds, where the system or the device can tell."""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return all(check.passed for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {"passed": self.passed, **asdict(self)}


def check_machine(
    device: torch.device,
    *,
    compile: bool = True,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> MachineReport:
    """Check every engine on a device, and measure it beside plain autograd.

    Args:
        device: to be checked.
        compile: whether to check the compiled engine too, which takes most of the time.
        progress: called with what begins, the number of parts done and their total.

    Examples:
        >>> from firststep.machine_check import check_machine
        >>> report = check_machine(torch.device("cpu"), compile=False)
        >>> report.passed
        True
    """
    report = MachineReport(machine=collect_provenance(device.type), device=str(device))
    parts = list(_parts(report, device, compile))
    for number, (what, part) in enumerate(parts):
        progress(what, number, len(parts))
        part()
    return report


def _parts(
    report: MachineReport, device: torch.device, compile: bool
) -> Iterator[tuple[str, Callable[[], None]]]:
    expected: Gradient = {}
    yield "reference, float64 on the CPU", lambda: expected.update(_plain(torch.device("cpu"), torch.float64))
    engines: dict[str, dict[str, Any]] = {
        "stepwise": {},
        "stepwise, nothing saved": {"memory": 0},
        "unrolled": {"engine": "unrolled"},
    }
    dtypes = [torch.float64, torch.float32] if has_float64(device) else [torch.float32]
    for name, options in engines.items():
        for dtype in dtypes:
            yield f"gradient: {name}", _gradient_check(report, expected, name, device, dtype, options)
    if device.type in ("cpu", "cuda", "mps"):
        yield "outputs in bfloat16", lambda: report.checks.append(_bfloat16_check(device))
    if compile:
        options = {"compile": True}
        yield "compiling", _gradient_check(report, expected, "compiled", device, torch.float32, options)
    yield "condition number", lambda: report.checks.append(_spectrum_check(device))
    yield "one update, twice", lambda: report.checks.append(_repeat_check(device))
    for name in CONTENDERS:
        if compile or name != "compiled":
            yield f"speed: {name}", partial(_measure, report, name, device)


def _problem(device: torch.device, dtype: torch.dtype, **options: Any) -> tuple[MetaLearner, Task]:
    """Return a learner and a task of noise: the same numbers for every device and dtype."""
    source = torch.Generator().manual_seed(0)
    network = build_backbone(
        "conv4", ways=WAYS, image_size=IMAGE_SIZE, channels=1, filters=FILTERS, generator=source
    )
    classes = torch.arange(WAYS)
    images = (torch.randn(WAYS * n, 1, IMAGE_SIZE, IMAGE_SIZE, generator=source) for n in (SHOTS, QUERIES))
    support, query = (part.to(device=device, dtype=dtype) for part in images)
    labels = (classes.repeat_interleave(n).to(device) for n in (SHOTS, QUERIES))
    support_y, query_y = labels
    meta = MetaLearner(
        network.to(device=device, dtype=dtype),
        maml(RATE),
        steps=STEPS,
        conditioning=Conditioning(),
        **options,
    )
    return meta, Task(support, support_y, query, query_y)


def _plain(device: torch.device, dtype: torch.dtype) -> Gradient:
    """Return the meta-gradient by autograd through all steps, with a row of the Jacobian per sample."""
    meta, task = _problem(device, dtype)
    network = meta.network
    start = {name: value.detach().clone().requires_grad_() for name, value in network.named_parameters()}
    theta = start
    total: Tensor | float = 0.0
    for _ in range(STEPS):
        logits = functional_call(network, theta, (task.support_x,))
        losses = F.cross_entropy(logits, task.support_y, reduction="none")
        head = [theta[name] for name in theta if name.startswith("classifier.")]
        spectrum = torch.linalg.eigvalsh(_dense_gram(losses, head))
        total = total + spectrum.log10().var(correction=0) / STEPS
        grads = torch.autograd.grad(losses.mean(), list(theta.values()), create_graph=True)
        theta = {name: value - RATE * g for (name, value), g in zip(theta.items(), grads, strict=True)}
    query = F.cross_entropy(functional_call(network, theta, (task.query_x,)), task.query_y)
    grads = torch.autograd.grad(query + total, list(start.values()))
    return dict(zip(start, grads, strict=True))


def _dense_gram(losses: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    residuals = (losses / len(losses)).sqrt()
    rows = [torch.autograd.grad(one, parameters, create_graph=True) for one in residuals]
    jacobian = torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])
    return jacobian @ jacobian.T


def _gradient_check(
    report: MachineReport,
    expected: Gradient,
    name: str,
    device: torch.device,
    dtype: torch.dtype,
    options: dict[str, Any],
) -> Callable[[], None]:
    def run() -> None:
        begin = time.perf_counter()
        found = _computed(device, dtype, options)()
        if options.get("compile"):
            report.seconds["first call, compiled"] = time.perf_counter() - begin
        apart = sum(float((found[key].cpu().double() - expected[key]).square().sum()) for key in expected)
        size = sum(float(value.square().sum()) for value in expected.values())
        error = (apart / size) ** 0.5
        shown = str(dtype).removeprefix("torch.")
        bound = TOLERANCE[shown]
        report.checks.append(
            Check(
                f"meta-gradient, {name}, {shown}", f"error {error:.1e}", f"below {bound:.0e}", error < bound
            )
        )

    return run


def _computed(device: torch.device, dtype: torch.dtype, options: dict[str, Any]) -> Callable[[], Gradient]:
    """Return a function that computes the meta-gradient by one of our engines."""
    meta, task = _problem(device, dtype, **options)
    names = [name for name, _ in meta.network.named_parameters()]

    def compute() -> Gradient:
        meta.zero_grad()
        meta([task]).backward()
        grads = (parameter.grad for parameter in meta.network.parameters())
        return {name: grad for name, grad in zip(names, grads, strict=True) if grad is not None}

    return compute


def _spectrum_check(device: torch.device) -> Check:
    meta, task = _problem(torch.device("cpu"), torch.float64)
    logits = meta.network(task.support_x)
    losses = F.cross_entropy(logits, task.support_y, reduction="none")
    head = [value for name, value in meta.network.named_parameters() if name.startswith("classifier.")]
    wanted = float(condition_number(_dense_gram(losses, head).detach()))
    ours, there = _problem(device, torch.float32)
    found = float(ours.condition_number(there.support_x, there.support_y))
    passed = abs(found / wanted - 1) < SPECTRUM_TOLERANCE
    return Check("condition number, float32", f"{found:.2f}", f"{wanted:.2f}, within 1 %", passed)


def _bfloat16_check(device: torch.device) -> Check:
    outputs = []
    for where, dtype, rounded in (
        (torch.device("cpu"), torch.float64, None),
        (device, torch.float32, torch.bfloat16),
    ):
        meta, task = _problem(where, dtype)
        params = meta.functional.params()
        with torch.no_grad(), networks_in(rounded, next(iter(params.values()))):
            outputs.append(meta.functional(params, task.support_x).logits.cpu().double())
    error = float((outputs[1] - outputs[0]).norm() / outputs[0].norm())
    bound = BFLOAT16_TOLERANCE
    return Check("outputs, bfloat16", f"error {error:.1e}", f"below {bound:.0e}", error < bound)


def _repeat_check(device: torch.device) -> Check:
    def updated() -> list[Tensor]:
        meta, task = _problem(device, torch.float32)
        optimiser = torch.optim.Adam(meta.parameters(), 1e-3)
        meta([task, task]).backward()
        optimiser.step()
        return [parameter.detach().cpu() for parameter in meta.parameters()]

    same = all(torch.equal(one, other) for one, other in zip(updated(), updated(), strict=True))
    return Check("one update, twice", "the same bits" if same else "different bits", "the same bits", same)


def _measure(report: MachineReport, name: str, device: torch.device) -> None:
    compute = _contender(name, device)
    _wait(compute())
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        _wait(compute())
        times.append(time.perf_counter() - begin)
    report.seconds[name] = statistics.median(times)
    if (peak := _peak_megabytes(name, device)) is not None:
        report.megabytes[name] = peak


def _contender(name: str, device: torch.device) -> Callable[[], Gradient]:
    options = CONTENDERS[name]
    if options is None:
        return lambda: _plain(device, torch.float32)
    return _computed(device, torch.float32, options)


def _wait(gradient: Gradient) -> None:
    """Wait until the device has computed it."""
    float(next(iter(gradient.values())).sum())


def _peak_megabytes(name: str, device: torch.device) -> float | None:
    """Return the memory that a contender adds at its peak; None where it cannot be measured."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        _wait(_contender(name, device)())
        return (torch.cuda.max_memory_allocated(device) - before) / 2**20
    if device.type != "cpu" or _resident("VmHWM") is None:
        return None
    # A process of its own, because this one already holds the memory of the others.
    command = [sys.executable, "-c", f"from {__name__} import print_peak; print_peak({name!r})"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def print_peak(name: str) -> None:
    """Print the memory in MiB that a contender adds to this process at its peak."""
    compute = _contender(name, torch.device("cpu"))
    before = _resident("VmRSS")
    _wait(compute())
    peak = _resident("VmHWM")
    assert peak is not None
    assert before is not None
    print(peak - before)


def _resident(entry: str) -> float | None:
    """Return an entry of this process's memory in MiB; None where the system has no such file."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 2**10 for line in lines if line.startswith(f"{entry}:")), None)
