"""Import the tests' writers of small dataset copies."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

HELPERS = Path(__file__).parents[2] / "tests" / "helpers"


def dataset_copies() -> Any:
    """Return the module ``dataset_copies`` of the tests, which imports its neighbours by their bare names."""
    if str(HELPERS) not in sys.path:
        sys.path.insert(0, str(HELPERS))
    return importlib.import_module("dataset_copies")
