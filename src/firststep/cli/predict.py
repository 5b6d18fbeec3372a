"""``firststep predict``: classify images with a model from ``firststep adapt``."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from firststep.errors import FirststepError

if TYPE_CHECKING:
    from firststep.cli.predictions import Predictions
    from firststep.deployment import DeployedModel

AT_ONCE = 64
"""Number of images in memory at once."""
STDIN = Path("-")
PAUSE = 0.5
"""Seconds between two checks of a watched folder."""


def predict(
    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")],
    paths: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATH")] = (),
    /,
    *,
    watch: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
    none_of_these: bool = True,
    export: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE")] = (),
    runtime: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    format: Literal["table", "csv", "json"] = "table",
    device: str = "cpu",
) -> None:
    """Classify images with an adapted or exported model.

    The predictions equal those of firststep adapt: each depends on its own image alone.

    Args:
        model: Folder that firststep adapt wrote (adapted/), or a file that it exported: .onnx, .pt2,
            .safetensors. The first two are programs: use only those that you trust.
        paths: Images, folders of images or of class folders, patterns such as 'shots/*.jpg', .csv files that
            list images; - reads one image from standard input. For a model of texts: .csv files with the
            column text, or .txt files with one text per line; - reads texts from standard input.
        watch: Also classify every image that appears in this folder, until Ctrl-C. Rows are CSV or, with
            --format json, one object per line.
        none_of_these: Mark images that belong to no class, if the model supports it.
        export: Also write a classifier that firststep adapt saved to files that end in .onnx, .pt2,
            .safetensors or .html.
        runtime: Folder or .tgz of the npm package onnxruntime-web, for an .html file.
        format: Format of the predictions on standard output.
        device: Device: cpu, cuda, ...; an .onnx file needs onnxruntime-gpu for cuda.
    """
    from firststep.cli.progress import progress_bar
    from firststep.cli.terminal import console
    from firststep.deployment import load_deployed
    from firststep.deployment._internal import is_text_classifier

    if is_text_classifier(model):
        if watch is not None or device != "cpu" or export or runtime is not None:
            raise FirststepError(
                f"{model} classifies texts: leave out --watch, --device, --export and --runtime"
            )
        _predict_texts(model, paths, none_of_these, format)
        return
    if not paths and watch is None and not export:
        raise FirststepError("name the images or folders to classify after the model")
    if watch is not None and not watch.is_dir():
        raise FirststepError(f"--watch {watch}: there is no such folder")
    if export:
        _export(model, export, runtime)
    if not paths and watch is None:
        return
    files = [file for path in paths for file in found_files(path)]
    loaded = load_deployed(model, device=device)
    if files:
        begun = time.perf_counter()
        with progress_bar() as progress:
            predictions = classified(loaded, files, none_of_these, progress)
        seconds = time.perf_counter() - begun
        predictions.show(format)
        if len(files) > 1:
            rate = f"{len(files) / seconds:.1f} per second"
            console(stderr=True).print(f"{len(files)} images in {seconds:.1f} s ({rate})")
    if watch is not None:
        kind = "csv" if format == "table" else format
        for number, file in enumerate(_new_files(watch)):
            try:
                classified(loaded, [file], none_of_these).show_row(kind, head=number == 0 and not files)
            except FirststepError as error:
                console(stderr=True).print(f"firststep: {error}")


def _predict_texts(
    model: Path, paths: Sequence[Path], none_of_these: bool, format: Literal["table", "csv", "json"]
) -> None:
    from firststep.cli.predictions import Predictions
    from firststep.cli.progress import progress_bar
    from firststep.cli.terminal import console
    from firststep.cli.text_files import asked_texts
    from firststep.deployment._internal import TextEncoder, load_text_classifier

    if not paths:
        raise FirststepError("name the files with texts after the model: .csv with the column text, or .txt")
    classifier = load_text_classifier(model)
    texts = [text for path in paths for text in asked_texts(path).texts]
    encode = TextEncoder()
    begun = time.perf_counter()
    with progress_bar() as progress:
        answers = classifier.answers(encode(texts, progress))
    seconds = time.perf_counter() - begun
    scores = answers.none.tolist() if none_of_these and answers.none is not None else None
    found = Predictions(
        classifier.card.classes, texts, answers.probabilities.tolist(), none=scores, what="text"
    )
    found.show(format)
    console(stderr=True).print(
        f"{len(texts)} texts in {seconds:.1f} s ({len(texts) / seconds:.1f} per second)"
    )


def _export(model: Path, paths: Sequence[Path], runtime: Path | None) -> None:
    import numpy as np

    from firststep.cli.exports import require_exports, write_exports
    from firststep.deployment._internal import load_classifier

    require_exports(paths, runtime)
    classifier, card = load_classifier(model)
    size, channels = card.preprocessing.image_size, card.preprocessing.channels
    noise = np.random.default_rng(0).integers(0, 256, (2, size, size, channels), dtype=np.uint8)
    write_exports(paths, classifier, card, noise, runtime)


def found_files(path: Path) -> list[Path]:
    """Return the images that a path, a pattern or ``-`` names."""
    from firststep.evaluation import query_files

    if path == STDIN:
        return [STDIN]
    if has_magic(str(path)) and not path.exists():
        matching = [Path(name) for name in sorted(glob(str(path), recursive=True))]
        if not matching:
            raise FirststepError(f"{path}: no file has such a name")
        return [file for match in matching for file in query_files(match).files]
    return query_files(path).files


def classified(
    model: DeployedModel,
    files: Sequence[Path],
    none_of_these: bool,
    progress: Callable[[str, int, int], None] | None = None,
) -> Predictions:
    """Classify files, a few at a time; ``-`` is standard input."""
    import numpy as np

    from firststep.cli.predictions import Predictions
    from firststep.data import decode
    from firststep.deployment import Answers

    recipe = model.card.preprocessing
    parts = []
    for start in range(0, len(files), AT_ONCE):
        chunk = files[start : start + AT_ONCE]
        pixels = [
            decode(io.BytesIO(sys.stdin.buffer.read()), "standard input", recipe)
            if file == STDIN
            else decode(file, str(file), recipe)
            for file in chunk
        ]
        parts.append(model.answers(np.stack(pixels)))
        if progress is not None:
            progress("classifying", start + len(chunk), len(files))
    answers = Answers.joined(parts, len(model.card.classes))
    scores = answers.none.tolist() if none_of_these and answers.none is not None else None
    return Predictions(model.card.classes, list(files), answers.probabilities.tolist(), none=scores)


def _new_files(folder: Path) -> Iterator[Path]:
    """Yield images that appear in a folder once their size has stopped changing, until interrupted."""
    from firststep.data import IMAGE_ENDINGS
    from firststep.utils import stop_requests

    def sizes() -> dict[Path, int]:
        try:
            files = [file for file in folder.iterdir() if file.suffix.lower() in IMAGE_ENDINGS]
            return {file: file.stat().st_size for file in files if not file.name.startswith(".")}
        except OSError:  # removed in the meantime
            return {}

    done = set(sizes())
    before: dict[Path, int] = {}
    with stop_requests() as stop:
        while not stop:
            now = sizes()
            for file in sorted(now):
                if file not in done and now[file] and before.get(file) == now[file]:
                    done.add(file)
                    yield file
            before = now
            time.sleep(PAUSE)
