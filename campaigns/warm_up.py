"""All imports of all commands, made once, so that no child has any left to make."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import sys

from campaigns import warm_fork
from campaigns.warm_fork import Function, Outcome, Surroundings


def import_everything() -> None:
    """What commands import at any time; those that are slow and imported late are named."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a pool of threads would not survive the fork
    os.environ.setdefault("MPLBACKEND", "agg")
    import torch

    torch.set_num_threads(1)
    from firststep.cli import COMMANDS

    late = ("torch._dynamo", "torch._refs", "torch._decomp", "torch._meta_registrations", "filelock", "tyro")
    drawing = ("matplotlib.pyplot", "matplotlib.backends.backend_agg", "torch.utils.tensorboard", "PIL.Image")
    parts = ("firststep.paper", "firststep.__main__", "firststep.cli.data_view", "unittest.mock")
    for name in (*late, *drawing, *parts, *(f"firststep.cli.{command}" for command in COMMANDS)):
        importlib.import_module(name)
    from PIL import Image

    Image.init()
    gc.freeze()  # a collection in a child would write to all objects, and so copy them


def import_what_a_child_needed(function: Function, surroundings: Surroundings, seconds: float) -> Outcome:
    """Run a function in a child, then import here what it had to import there."""
    report = os.memfd_create("imported")

    def reporting() -> int:
        before = set(sys.modules)
        status = function()
        new = sorted(name for name in set(sys.modules) - before if not name.startswith("__"))
        os.write(report, json.dumps(new).encode())
        return status

    outcome = warm_fork.run(reporting, surroundings, seconds)
    for name in json.loads(warm_fork.content(report) or "[]"):
        with contextlib.suppress(Exception):  # a name in sys.modules need not be a module that can be found
            importlib.import_module(name)
    return outcome
