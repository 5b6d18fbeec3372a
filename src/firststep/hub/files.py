"""Files of a model repository: without paths of this machine, and fetched where they are not here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download

PRIVATE = ("data_path", "cache")
"""Settings that are paths of the machine that trained."""
NAMED = ("init", "pretrained")
"""Settings that may be a path: its last part says enough, because the weights themselves are saved."""


def shareable(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored configuration without paths."""
    shared = dict(config)
    for name in PRIVATE:
        if name in shared:
            shared[name] = None
    for name in NAMED:
        value = shared.get(name)
        if isinstance(value, str) and not value.startswith("builtin:"):
            shared[name] = Path(value).name
    return shared


def fetched(model_id: str, **options: Any) -> Path:
    """Return the folder of a model: ``model_id`` itself, or a snapshot of that repository on the Hub.

    Args:
        model_id: a folder, or ``owner/name``.
        options: of ``huggingface_hub.snapshot_download``.
    """
    return Path(model_id if Path(model_id).is_dir() else snapshot_download(model_id, **options))
