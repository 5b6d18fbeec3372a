"""``firststep predict``: classify images with a model that ``firststep adapt`` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro

from firststep.errors import FirststepError


def predict(
    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")],
    paths: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATH")],
    /,
    *,
    format: Literal["table", "csv", "json"] = "table",
    device: str = "cpu",
) -> None:
    """Classify images with an adapted or exported model.

    The answers are those that firststep adapt gave: each depends on its own image alone.

    Args:
        model: Folder that firststep adapt wrote (adapted/), or a file that it exported: .onnx, .pt2,
            .safetensors. The first two are programs: use only those that you trust.
        paths: Images, folders of images or of class folders, .csv files that name them.
        format: Of the predictions on standard output.
        device: cpu, cuda, ...; exported programs run on the CPU.
    """
    from firststep.cli.predictions import Predictions
    from firststep.cli.progress import progress_bar
    from firststep.deployment import load_deployed
    from firststep.evaluation import query_files
    from firststep.evaluation._internal import load_pixels

    if not paths:
        raise FirststepError("name the images or folders to classify after the model")
    files = [file for path in paths for file in query_files(path).files]
    loaded = load_deployed(model, device=device)
    answers: list[list[float]] = []
    with progress_bar() as progress:
        for file in files:
            answers += loaded.probabilities(load_pixels([file], loaded.card.preprocessing)).tolist()
            progress("classifying", len(answers), len(files))
    Predictions(loaded.card.classes, files, answers).show(format)
