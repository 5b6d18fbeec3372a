"""Write a classifier to the files of ``--export``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from firststep.cli.progress import progress_bar
from firststep.cli.terminal import console
from firststep.deployment import ImageClassifier, ModelCard, export_model
from firststep.deployment._internal import find_web_runtime, require_exporter
from firststep.errors import FirststepError


def require_exports(paths: Sequence[Path], runtime: Path | None) -> None:
    """Refuse what cannot be written, and get the runtime of web pages, before any other work."""
    for path in paths:
        require_exporter(path)
    if any(path.suffix.lower() == ".html" for path in paths):
        find_web_runtime(runtime)
    elif runtime is not None:
        raise FirststepError("--runtime is for an --export file that ends in .html")


def write_exports(
    paths: Sequence[Path],
    module: ImageClassifier,
    card: ModelCard,
    pixels: np.ndarray,
    runtime: Path | None,
) -> None:
    """Write every file that can be written, then raise the errors of the others."""
    written, failed = [], []
    with progress_bar() as progress:
        for path in paths:
            progress(f"exporting {path.name}", 0, 1)
            try:
                export_model(path, module, card, pixels, runtime)
                written.append(str(path))
            except FirststepError as error:
                failed.append(str(error))
    if written:
        console(stderr=True).print(f"written: {', '.join(written)}")
    if failed:
        raise FirststepError("; ".join(failed))
