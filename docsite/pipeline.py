"""The passes of the compiler as a table, from the lists in `compiler/passes.py`."""

from __future__ import annotations

import inspect
from pathlib import Path

from firststep.metagradient.compiler.passes import CLEAN_UP, PREPARE, REWRITE
from firststep.utils.table import Table

STAGES = {"clean up": CLEAN_UP, "rewrite": REWRITE, "prepare each part": PREPARE}


def table() -> str:
    """Return all passes in order, each with its file and the first line of its docstring."""
    rows = Table(["stage", "pass", "file", "purpose"], left_aligned=4)
    for stage, passes in STAGES.items():
        for one in passes:
            purpose = (inspect.getdoc(one) or "").partition("\n")[0]
            rows.add_row(stage, f"`{one.__name__}`", f"`{Path(inspect.getfile(one)).name}`", purpose)
    return rows.to_markdown()
