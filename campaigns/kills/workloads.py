"""What is killed: each command that writes, how to go on after a kill, and what must be equal in the end."""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from campaigns.fuzz.copies import dataset_copies
from campaigns.stock import QUICK_TEST, TINY, Stock

METHODS = (
    "maml",
    "fomaml",
    "anil",
    "boil",
    "gauss-newton",
    "maml++",
    "meta-sgd",
    "meta-curvature",
    "gap",
    "modgrad",
    "warp-maml",
    "momentum",
    "adam",
    "rmsprop",
)

Commands = Callable[[Path, Stock], list[list[str]]]


@dataclass(frozen=True, kw_only=True)
class Workload:
    start: Callable[[Stock], list[str]]
    """the arguments of firststep"""
    go_on: Commands
    """after a kill, by what lies in the folder: the commands that finish the work"""
    prepare: Callable[[Path, Stock], None] = lambda work, stock: None
    """makes what the command reads"""
    environment: dict[str, str] = field(default_factory=dict)
    victim: Literal["itself", "worker", "rank"] = "itself"
    launcher: tuple[str, ...] = ()
    """words before ``-m firststep``, for torchrun"""
    seconds: float = 120.0
    many_processes: bool = False
    """costs seconds to start: killed at random moments only"""


def _train(method: str) -> Workload:
    def start(stock: Stock) -> list[str]:
        return ["train", "demo", *TINY, *stock.data_flags, "--method", method, "--out", "run"]

    return Workload(start=start, go_on=lambda work, stock: _resume(work / "run", start(stock)))


OUTER_LOOP = (
    *("--optimizer", "adamw", "--schedule", "cosine", "--warmup", "1", "--clip-norm", "1", "--ema", "0.9"),
    *("--head", "shared", "--select-step", "1"),
)
"""All that an outer loop can have, so that all of it must survive."""


def _train_outer(stock: Stock) -> list[str]:
    return ["train", "demo", *TINY, *stock.data_flags, *OUTER_LOOP, "--init", str(stock.run), "--out", "run"]


def _pretrain(stock: Stock) -> list[str]:
    small = ["--filters", "4", "--image-size", "16", "--epochs", "3", "--batch", "4", "--threads", "1"]
    tested = ["--validation-episodes", "2", "--ways", "2", "--shots", "1", "--queries", "1"]
    return ["pretrain", *small, *tested, *stock.data_flags, "--out", "pretrained"]


def _resume_pretraining(work: Path, stock: Stock) -> list[list[str]]:
    is_there = (work / "pretrained" / "pretrain.json").is_file()
    return [["pretrain", "--resume", "pretrained"]] if is_there else [_pretrain(stock)]


def _resume(run: Path, start: list[str]) -> list[list[str]]:
    """As the refusal of a folder that holds a run says."""
    return [["train", "--resume", run.name]] if (run / "run.json").is_file() else [start]


def _same(start: Callable[[Stock], list[str]]) -> Commands:
    """The same command again goes on."""
    return lambda work, stock: [start(stock)]


def _data(name: str) -> Workload:
    def prepare(work: Path, stock: Stock) -> None:
        shutil.copytree(stock.pictures, work / "pictures")
        with zipfile.ZipFile(work / "pictures.zip", "w") as archive:
            for file in sorted((work / "pictures").rglob("*.png")):
                info = zipfile.ZipInfo(str(file.relative_to(work)))
                archive.writestr(info, file.read_bytes())
        if name == "pictures.zip":
            shutil.rmtree(work / "pictures")
        _same_times(work)

    def start(stock: Stock) -> list[str]:
        sheets = ["--sheet", "sheets/episode.png", "--classes-sheet", "sheets/classes.png"]
        return ["data", "folder", name, "--size", "16", "--cache", "cache", *sheets]

    return Workload(start=start, go_on=_same(start), prepare=prepare)


def _same_times(work: Path) -> None:
    """The name of a cache tells the times of its files."""
    import os

    for path in work.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))


def _copy_run(work: Path, stock: Stock) -> None:
    shutil.copytree(stock.run, work / "run", ignore=shutil.ignore_patterns("evaluations"))


def _evaluate(stock: Stock) -> list[str]:
    return ["evaluate", "run", *QUICK_TEST, "--auto"]


def _compare(stock: Stock) -> list[str]:
    return ["compare", "run", str(stock.run), *QUICK_TEST]


def _adapt(stock: Stock) -> list[str]:
    images = ["--support", str(stock.support), "--query", str(stock.folder / "query.png")]
    return ["adapt", "run", *images, "--steps", "2"]


def _diagnose(stock: Stock) -> list[str]:
    return ["diagnose", "run", "--tasks", "1", "--shots", "2", "--subsets", "cls"]


def _cifar(work: Path, stock: Stock) -> None:
    (work / "cifar").mkdir()
    dataset_copies().cifar_pickles(work / "cifar", "cifar-fs")
    _same_times(work)


def _paper(executor: str) -> Callable[[Stock], list[str]]:
    def start(stock: Stock) -> list[str]:
        scale = [
            "--scale",
            "smoke",
            "--queries",
            "1",
            "--updates",
            "4",
            "--data",
            "cifar-fs=cifar",
            "--partial",
        ]
        return ["paper", "run", "table1", *scale, "--only", "5-way 1-shot", "1-shot", "--executor", executor]

    return start


def _sweep(stock: Stock) -> list[str]:
    tiny = ["train", "demo", *TINY, "--updates", "6", *stock.data_flags]
    return [*tiny, "--out", "runs", "--sweep", "seed=0,1", "--at-once", "2"]


def _demo(stock: Stock) -> list[str]:
    return ["demo", "--out", "demo", "--updates", "6", "--episodes", "2"]


def _torchrun(stock: Stock) -> list[str]:
    return ["train", "demo", *TINY, "--updates", "6", *stock.data_flags, "--out", "run"]


_RANKS = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def _after_torchrun(work: Path, stock: Stock) -> list[list[str]]:
    return _resume(work / "run", _torchrun(stock))


_paper_local, _paper_inline = _paper("local"), _paper("inline")

WORKLOADS: dict[str, Workload] = {
    **{f"train-{method}": _train(method) for method in METHODS},
    "train-outer-loop": Workload(
        start=_train_outer, go_on=lambda work, stock: _resume(work / "run", _train_outer(stock))
    ),
    "pretrain": Workload(start=_pretrain, go_on=_resume_pretraining),
    "data-folder": _data("pictures"),
    "data-archive": _data("pictures.zip"),
    "evaluate": Workload(start=_evaluate, go_on=_same(_evaluate), prepare=_copy_run),
    "compare": Workload(start=_compare, go_on=_same(_compare), prepare=_copy_run),
    "adapt": Workload(start=_adapt, go_on=_same(_adapt), prepare=_copy_run),
    "diagnose": Workload(start=_diagnose, go_on=_same(_diagnose), prepare=_copy_run),
    "paper-inline": Workload(start=_paper_inline, go_on=_same(_paper_inline), prepare=_cifar),
    "paper-planner": Workload(
        start=_paper_local, go_on=_same(_paper_local), prepare=_cifar, many_processes=True
    ),
    "paper-worker": Workload(
        start=_paper_local, go_on=_same(_paper_local), prepare=_cifar, victim="worker", many_processes=True
    ),
    "sweep-planner": Workload(start=_sweep, go_on=_same(_sweep), many_processes=True),
    "sweep-worker": Workload(start=_sweep, go_on=_same(_sweep), victim="worker", many_processes=True),
    "demo-planner": Workload(start=_demo, go_on=_same(_demo), many_processes=True, seconds=300),
    "demo-worker": Workload(
        start=_demo, go_on=_same(_demo), victim="worker", many_processes=True, seconds=300
    ),
    "torchrun-rank": Workload(
        start=_torchrun, go_on=_after_torchrun, victim="rank", launcher=_RANKS, many_processes=True
    ),
    "torchrun-launcher": Workload(
        start=_torchrun, go_on=_after_torchrun, launcher=_RANKS, many_processes=True
    ),
}
