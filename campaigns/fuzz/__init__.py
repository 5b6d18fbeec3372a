"""Fuzz: damaged and made-up inputs of every kind; each must be used, or refused in one line."""

from __future__ import annotations

import importlib
import shutil
import time
from pathlib import Path
from random import Random

from campaigns import snapshot, warm
from campaigns.fuzz.case import Generator, Sandbox
from campaigns.fuzz.judge import judge
from campaigns.fuzz.limits import limited, python_call
from campaigns.report import Result
from campaigns.stock import Stock
from campaigns.warm import Surroundings

KINDS = {
    "images": 5,
    "run_folders": 5,
    "archives": 2,
    "pickles": 3,
    "datasets": 2,
    "flags": 5,
    "surroundings": 2,
    "user_modules": 2,
    "library": 6,
    "page": 1,
}
"""Kind of case: its share of a campaign. The function of that name in ``inputs`` or its module makes it."""
FILES = ("images", "run_folders", "archives", "pickles", "datasets")


def generator(kind: str) -> Generator:
    """Return the function that makes the cases of a kind."""
    module = importlib.import_module(f"campaigns.fuzz.{'inputs' if kind in FILES else kind}")
    found: Generator = getattr(module, kind)
    return found


def run_case(kind: str, seed: int, stock: Stock, folder: Path) -> Result:
    """Make the case of a seed, run it in a child, and judge what it did."""
    shutil.rmtree(folder, ignore_errors=True)
    sandbox = Sandbox(folder, stock)
    for name in ("tmp", "home"):
        (folder / name).mkdir(parents=True)
    sandbox.work.mkdir(parents=True)
    try:
        case = generator(kind)(Random(f"{kind} {seed}"), sandbox)
    except Exception as error:
        raise RuntimeError(f"the case {kind}:{seed} cannot be made") from error
    before, stock_before = snapshot.take(folder), _state(stock)
    function = (
        warm.command(case.arguments) if case.arguments is not None else python_call(case.call, case.expected)
    )
    surroundings = Surroundings(
        cwd=sandbox.work,
        environment={**stock.environment(folder / "tmp", folder / "home"), **case.environment},
        stdin=case.stdin,
        stdout=case.stdout,
        stderr=case.stderr,
        encoding=case.encoding,
        before=limited(case.before),
    )
    start = time.monotonic()
    outcome = warm.run(function, surroundings, case.seconds)
    violations = judge(case, outcome, before, snapshot.take(folder))
    if _state(stock) != stock_before:
        raise RuntimeError(
            f"{kind}:{seed} has changed the stock, so that later cases mean nothing: {case.what}"
        )
    shutil.rmtree(folder, ignore_errors=True)
    count = {0: "accepted", 2: "refused", 130: "interrupted"}.get(outcome.status, "other")
    return Result(
        campaign="fuzz",
        kind=kind,
        seed=seed,
        what=case.what,
        count=count,
        violations=violations,
        seconds=time.monotonic() - start,
    )


def _state(stock: Stock) -> list[tuple[str, int, int]]:
    """Return names, sizes and times of what cases share: cheap. Lock files come and go."""
    found = []
    for name in ("pictures", "support", "run", "results", "query.png"):
        root = stock.folder / name
        for path in [root, *sorted(root.rglob("*"))]:
            status = path.lstat()
            found.append((str(path), status.st_size if path.is_file() else 0, status.st_mtime_ns))
    return found
