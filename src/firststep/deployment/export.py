"""Export a classifier as ONNX, pt2, safetensors or a web page, and check the file by running it."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from firststep.deployment.card import KEY, ModelCard
from firststep.deployment.image_classifier import ImageClassifier
from firststep.deployment.loading import Answers, deployed, load_deployed, require_onnxruntime
from firststep.deployment.saving import weights_file
from firststep.deployment.web_page import web_page
from firststep.deployment.web_runtime import find_web_runtime
from firststep.errors import FirststepError
from firststep.utils import check_file_writable, replacing
from firststep.utils.extras import extra

EXPORT_ENDINGS = (".onnx", ".pt2", ".safetensors", ".html")
"""The endings of the formats that ``export_model`` writes.

Examples:
    >>> from firststep.deployment import EXPORT_ENDINGS
    >>> EXPORT_ENDINGS
    ('.onnx', '.pt2', '.safetensors', '.html')
"""
TOLERANCE = 1e-5
"""Largest difference between the probabilities of the file and those of the model."""


def require_exporter(path: Path) -> None:
    """Refuse an unusable file name, folder or missing package before the work is done."""
    check_file_writable(path, *EXPORT_ENDINGS)
    if path.suffix.lower() in (".onnx", ".html"):
        with extra("onnx", f"an export to {path.suffix.lower()}"):
            import onnx  # noqa: F401
            import onnxscript  # noqa: F401
        require_onnxruntime()


def export_model(
    path: Path,
    classifier: ImageClassifier,
    card: ModelCard,
    pixels: np.ndarray,
    runtime: Path | None = None,
) -> None:
    """Write the file atomically, and keep it only if it gives these images the same probabilities.

    Args:
        path: the file; its ending selects the format: .onnx, .pt2, .safetensors, or .html for a web page.
        classifier: the module to write.
        card: its description, which goes into the file's metadata.
        pixels: a few images, uint8 [n, H, W, C].
        runtime: folder or .tgz of the npm package onnxruntime-web, for a web page; None takes that in the
            user's cache, or downloads it.

    Examples:
        >>> from firststep.deployment import export_model, make_deployable
        >>> config = run.config.to_json()
        >>> classifier, card = make_deployable(adapted, trained.preprocessing, config=config)
        >>> pixels = np.zeros((1, 16, 16, 1), dtype=np.uint8)
        >>> export_model(Path("model.safetensors"), classifier, card, pixels)
        >>> Path("model.safetensors").is_file()
        True
    """
    require_exporter(path)
    ending = path.suffix.lower()
    is_page = ending == ".html"
    web = find_web_runtime(runtime) if is_page else None
    write = {".onnx": _onnx, ".pt2": _pt2, ".safetensors": _safetensors, ".html": _onnx}[ending]
    content = write(classifier, card)
    with replacing(path) as temporary:
        temporary.write_bytes(content)
        # The model within a page is read back before the page is put around it.
        written = load_deployed(temporary, ending=".onnx" if is_page else ending, name=str(path))
        expected = deployed(classifier, card).batch_answers(pixels)
        difference = max(
            _difference(found, expected) for found in (written.answers(pixels), written.batch_answers(pixels))
        )
        if not difference <= TOLERANCE or written.card != card:
            raise FirststepError(
                f"{path} was not kept: read back, it gives probabilities that differ by {difference:.1g}"
            )
        if web is not None:
            temporary.write_bytes(web_page(content, card, web))


def _difference(found: Answers, expected: Answers) -> float:
    pairs = [(found.probabilities, expected.probabilities)]
    if found.none is not None and expected.none is not None:
        # The sharper the calibration of the score, the more it amplifies rounding.
        pairs.append((found.none / 10, expected.none / 10))
    return float(max(np.abs(ours - theirs).max() for ours, theirs in pairs))


def _safetensors(classifier: ImageClassifier, card: ModelCard) -> bytes:
    return weights_file(classifier.network, card)


def _pt2(classifier: ImageClassifier, card: ModelCard) -> bytes:
    stream = io.BytesIO()
    with quiet():
        torch.export.save(_program(classifier, card), stream, extra_files={KEY: card.text()})
    return stream.getvalue()


def _onnx(classifier: ImageClassifier, card: ModelCard) -> bytes:
    program = _program(classifier, card)
    with quiet(), _refusing("torch.onnx cannot write", classifier):
        names = ["probabilities", "none"] if classifier.has_none else ["probabilities"]
        exported = torch.onnx.export(program, dynamo=True, verbose=False, output_names=names)
        assert exported is not None
        exported.model.metadata_props[KEY] = card.text()
        content = exported.model_proto.SerializeToString()
    assert isinstance(content, bytes)
    return content


def _program(classifier: ImageClassifier, card: ModelCard) -> torch.export.ExportedProgram:
    size = card.preprocessing.image_size
    # Two images: with a batch of one, torch.export would fix the batch size.
    example = torch.zeros(2, size, size, card.preprocessing.channels, dtype=torch.uint8)
    count = torch.export.Dim("images", min=1)
    with quiet(), _refusing("torch.export cannot trace", classifier):
        return torch.export.export(classifier, (example,), dynamic_shapes={"images": {0: count}})


@contextmanager
def _refusing(what: str, classifier: ImageClassifier) -> Iterator[None]:
    """Turn any error of the tracer in a network's own code into one line."""
    try:
        yield
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise FirststepError(
            f"{what} {type(classifier.network).__name__} ({reason}); export to .safetensors instead"
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress torch's notes on missing packages and on its own deprecations."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)
