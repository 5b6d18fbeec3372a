"""The commands that are killed: each command that writes, how it is resumed, and what it reads."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from campaigns.fuzz.copies import dataset_copies
from campaigns.stock import QUICK_TEST, TINY, Stock

METHODS = (
    *("maml", "fomaml", "anil", "boil", "gauss-newton", "maml++", "meta-sgd", "meta-curvature", "gap"),
    *("modgrad", "warp-maml", "momentum", "adam", "rmsprop", "alfa", "metal"),
)
OUTER_LOOP = (
    *("--optimizer", "adamw", "--schedule", "cosine", "--warmup", "1", "--clip-norm", "1", "--ema", "0.9"),
    *("--head", "shared", "--select-step", "1"),
)
"""All options of the outer loop, so that each of them must survive a kill."""
SMALL = (
    *("--filters", "4", "--image-size", "16", "--epochs", "3", "--batch", "4", "--threads", "1"),
    *("--validation-episodes", "2", "--ways", "2", "--shots", "1", "--queries", "1"),
)
PAPER = (
    *("--scale", "smoke", "--queries", "1", "--updates", "4", "--data", "cifar-fs=cifar", "--partial"),
    *("--only", "5-way 1-shot", "1-shot", "--executor"),
)


@dataclass(frozen=True, kw_only=True)
class Workload:
    start: Callable[[Stock], list[str]]
    """arguments of firststep"""
    resume: tuple[str, ...] = ()
    """command, flag and folder that resume once the folder holds a record; before that, ``start`` again"""
    prepare: Callable[[Path, Stock], None] = lambda work, stock: None
    """makes what the command reads"""
    victim: Literal["itself", "worker", "rank"] = "itself"
    launcher: tuple[str, ...] = ()
    """words before ``-m firststep``, for torchrun"""
    seconds: float = 120.0
    many_processes: bool = False
    """costs seconds to start: killed at random moments only"""

    def go_on(self, work: Path, stock: Stock) -> list[str]:
        """Return the arguments that finish the work after a kill, as the refusal of the folder says."""
        record = {"train": "run.json", "pretrain": "pretrain.json"}
        if self.resume and (work / self.resume[-1] / record[self.resume[0]]).is_file():
            return list(self.resume)
        return self.start(stock)


def _train(*flags: str) -> Workload:
    return Workload(
        start=lambda stock: ["train", "demo", *TINY, *stock.data_flags, *flags, "--out", "run"],
        resume=("train", "--resume", "run"),
    )


def _data(name: str) -> Workload:
    def prepare(work: Path, stock: Stock) -> None:
        shutil.copytree(stock.pictures, work / "pictures")
        with zipfile.ZipFile(work / "pictures.zip", "w") as archive:
            for file in sorted((work / "pictures").rglob("*.png")):
                archive.writestr(zipfile.ZipInfo(str(file.relative_to(work))), file.read_bytes())
        if name == "pictures.zip":
            shutil.rmtree(work / "pictures")
        _same_times(work)

    flags = ["--size", "16", "--cache", "cache", "--sheet", "sheets/episode.png"]
    flags += ["--classes-sheet", "sheets/classes.png"]
    return Workload(start=lambda stock: ["data", "folder", name, *flags], prepare=prepare)


def _same_times(work: Path) -> None:
    """Set all times alike: the name of a cache depends on them."""
    for path in work.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))


def _on_a_run(*words: str) -> Workload:
    """Return a command on a copied run; ``{stock}`` in its words is the folder of the stock."""

    def prepare(work: Path, stock: Stock) -> None:
        shutil.copytree(stock.run, work / "run", ignore=shutil.ignore_patterns("evaluations"))

    return Workload(start=lambda stock: [word.format(stock=stock.folder) for word in words], prepare=prepare)


def _cifar(work: Path, stock: Stock) -> None:
    (work / "cifar").mkdir()
    dataset_copies().cifar_pickles(work / "cifar", "cifar-fs")
    _same_times(work)


def _both(name: str, workload: Workload) -> dict[str, Workload]:
    """Return the workload with a kill of the process that plans, and of one that works."""
    planner = replace(workload, many_processes=True)
    return {f"{name}-planner": planner, f"{name}-worker": replace(planner, victim="worker")}


def _paper(executor: str) -> Workload:
    return Workload(start=lambda stock: ["paper", "run", "table1", *PAPER, executor], prepare=_cifar)


def _sweep(stock: Stock) -> list[str]:
    tiny = ["train", "demo", *TINY, "--updates", "6", *stock.data_flags]
    return [*tiny, "--out", "runs", "--sweep", "seed=0,1", "--at-once", "2"]


_ranks = replace(
    _train("--updates", "6"),
    launcher=(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
    many_processes=True,
)

WORKLOADS: dict[str, Workload] = {
    **{f"train-{method}": _train("--method", method) for method in METHODS},
    "train-outer-loop": Workload(
        start=lambda stock: [*_train(*OUTER_LOOP).start(stock), "--init", str(stock.run)],
        resume=("train", "--resume", "run"),
    ),
    "pretrain": Workload(
        start=lambda stock: ["pretrain", *SMALL, *stock.data_flags, "--out", "pretrained"],
        resume=("pretrain", "--resume", "pretrained"),
    ),
    "data-folder": _data("pictures"),
    "data-archive": _data("pictures.zip"),
    "evaluate": _on_a_run("evaluate", "run", *QUICK_TEST, "--auto"),
    "compare": _on_a_run("compare", "run", "{stock}/run", *QUICK_TEST),
    "adapt": _on_a_run(
        *("adapt", "run", "--support", "{stock}/support", "--query", "{stock}/query.png", "--steps", "2")
    ),
    "diagnose": _on_a_run("diagnose", "run", "--tasks", "1", "--shots", "2", "--subsets", "cls"),
    "paper-inline": _paper("inline"),
    **_both("paper", _paper("local")),
    **_both("sweep", Workload(start=_sweep)),
    **_both(
        "demo",
        Workload(
            start=lambda stock: ["demo", "--out", "demo", "--updates", "6", "--episodes", "2"], seconds=300
        ),
    ),
    "torchrun-rank": replace(_ranks, victim="rank"),
    "torchrun-launcher": _ranks,
}
