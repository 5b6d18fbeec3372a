"""Shared by all tests: repeatable hypothesis runs, one thread, no global random state left behind."""

from __future__ import annotations

import asyncio
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby

import pytest
import torch
from hypothesis import settings

from firststep.utils.registry import Registry
from missing_compiler import pytest_runtest_call, pytest_runtest_setup  # noqa: F401, hooks of these names
from strict_skips import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401, hooks of these names
from warm_cli import WarmCommands

# No deadline: the cores are shared with other test processes, and a slow moment is not a failure.
settings.register_profile("firststep", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("firststep")

# A shell starts background jobs with Ctrl-C ignored, and their children inherit that; tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


COMPILED, CACHE = "TORCHINDUCTOR_CACHE_DIR", "FIRSTSTEP_CACHE"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Use one folder of compiled code for all processes of this run, empty at its start.

    Tests reuse what other tests of the run have compiled, and nothing from another version of the code.
    """
    if COMPILED not in os.environ:  # the workers of pytest-xdist inherit it
        os.environ[COMPILED] = tempfile.mkdtemp(prefix="firststep-tests-compiled-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ[COMPILED], ignore_errors=True))
    if CACHE not in os.environ and not os.access(os.path.expanduser("~"), os.W_OK):
        os.environ[CACHE] = tempfile.mkdtemp(prefix="firststep-tests-cache-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ[CACHE], ignore_errors=True))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order", type=int, metavar="SEED", help="run the tests in a random order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run slow tests first, divided over the workers, so that none ends alone with one; or a random order."""
    seed = config.getoption("--order")
    if seed is not None:
        items[:] = _shuffled(items, random.Random(seed))
        return
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    slow = [item for item in items if item.get_closest_marker("slow")]
    rest = [item for item in items if not item.get_closest_marker("slow")]
    length = -(-len(rest) // workers)
    # Workers begin with neighbouring parts of the list, and take over from one another later.
    items[:] = [
        item
        for worker in range(workers)
        for item in (*slow[worker::workers], *rest[worker * length : (worker + 1) * length])
    ]


def _shuffled(items: list[pytest.Item], order: random.Random) -> list[pytest.Item]:
    """Shuffle the files, and the tests within each file, so that its fixtures are made only once."""
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    order.shuffle(files)
    for tests in files:
        order.shuffle(tests)
    return [test for tests in files for test in tests]


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1234)


@pytest.fixture(scope="module", autouse=True)
def no_event_loop_left() -> Iterator[None]:
    """Check that no event loop is left: it would break later test files in the process."""
    yield
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()


@pytest.fixture
def clean_registries() -> Iterator[None]:
    """Remove what a test has registered."""
    for package in ("data", "evaluation", "paper"):  # theirs are not loaded by `import firststep`
        importlib.import_module(f"firststep.{package}")
    before = {id(registry): set(registry) for registry in _registries()}
    yield
    for registry in _registries():
        for name in set(registry) - before[id(registry)]:
            registry.unregister(name)


def _registries() -> list[Registry[object]]:
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "firststep"]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Registry)]
    return list({id(registry): registry for registry in found}.values())


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmCommands]:
    """Return a runner: ``warm.run([...])`` runs a command line in a new process without import time."""
    commands = WarmCommands()
    yield commands
    commands.close()
