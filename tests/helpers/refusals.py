"""Datasets that must be refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from firststep.data import open_dataset
from firststep.errors import FirststepError


def refused(name: str, path: Path, match: str = ".", **options: bool) -> str:
    """Open a dataset; return the one line with which it is refused, which matches ``match``."""
    with pytest.raises(FirststepError, match=match) as caught:
        open_dataset(name, path, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message
