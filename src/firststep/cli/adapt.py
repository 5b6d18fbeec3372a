"""``firststep adapt``: adapt a trained model to your own images."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Literal

import torch
import tyro

from firststep.cli.adaptation_report import repeated, report, to_json
from firststep.cli.exports import require_exports, write_exports
from firststep.cli.predictions import Predictions
from firststep.cli.progress import progress_bar
from firststep.cli.run_argument import A_RUN
from firststep.cli.terminal import console, render
from firststep.deployment import (
    deployed,
    make_deployable,
    save_adapted,
)
from firststep.errors import FirststepError
from firststep.evaluation import Confusion, adapt_to_images, confusion_figure, query_files
from firststep.evaluation._internal import (
    STEPS,
    class_numbers,
    load_pixels,
    same_images,
    support_classes,
    support_files,
    support_report,
    to_support,
)
from firststep.plotting import save_figure
from firststep.training import load_trained
from firststep.utils import check_folder_writable, write_json

Classifier = Literal["auto", "steps", "nearest-means", "ridge", "logistic", "average"]
CHECKED_IMAGES = 8
"""Number of support images on which an exported file must give the same probabilities."""


def adapt(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN", help=f"{A_RUN}.")],
    /,
    *,
    support: Annotated[Path, tyro.conf.arg(metavar="FOLDER|CSV")],
    query: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    classifier: Classifier = "auto",
    steps: Annotated[str, tyro.conf.arg(metavar="N|auto")] = "auto",
    rate_multiplier: float = 1.0,
    transductive: bool = False,
    none_of_these: bool = True,
    export: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE")] = (),
    runtime: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    format: Literal["table", "csv", "json"] = "table",
    which: Literal["best", "last"] = "best",
    device: str | None = None,
    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("adapted"),
) -> None:
    """Adapt a trained model to a few labelled images and classify others.

    The prediction for a query image depends only on the support images and on itself: batch norm uses the
    statistics of the support set. --transductive classifies all queries as one batch, by their own
    statistics.

    Args:
        support: Folder with one subfolder per class, with a few images each, or a .csv file with the columns
            image and label, whose paths are relative to the file. A model with a shared or zero head takes
            any number of classes; others take at most the trained number.
        query: Image, folder of images, or labelled images like those of --support, to classify.
        classifier: steps is the adapted network. nearest-means, ridge and logistic are fitted to its
            features, and average is the mean of these three. auto is average for fixed features, such as
            those of photos. Otherwise auto chooses by accuracy on held-out support images, and prefers the
            adapted network if accuracies are equal or --steps is a number.
        steps: Number of inner steps; auto chooses it by cross-validation on the support images.
        rate_multiplier: Multiply the length of inner steps by this.
        transductive: Let the query images share batch-norm statistics.
        none_of_these: Mark images that belong to no class, if the features are fixed.
        export: Also write the classifier with its preprocessing to files that end in .onnx, .pt2,
            .safetensors, or .html for a page that classifies in a browser, offline.
        runtime: Folder or .tgz of the npm package onnxruntime-web, which an .html file contains. The default
            is downloaded once (33 MB).
        format: Format of the predictions on standard output.
        which: Checkpoint: best by validation, or last.
        device: Device: cpu, cuda, ...; as trained if left out.
        out: Folder for the adapted weights, which firststep predict reads.
    """
    number = None if steps == "auto" else _number(steps)
    chosen = _chosen(classifier, number, transductive)
    if transductive and export:
        raise FirststepError(
            "--transductive answers depend on the other queries, which an exported model does not see: leave "
            "out --transductive or --export"
        )
    check_folder_writable(out)
    require_exports(export, runtime)
    trained = load_trained(run, which=which, device=device)
    with progress_bar() as progress:
        asked = query_files(query) if query is not None else None
        pixels = None if asked is None else load_pixels(asked.files, trained.preprocessing, progress)
        labelled = support_files(support)
        support_classes(labelled, support, trained.meta)
        known = load_pixels(labelled.files, trained.preprocessing, progress)
        examples = to_support(labelled, support, trained.meta, trained.preprocessing, known)
        expected = None
        if query is not None and asked is not None and asked.labels is not None:
            expected = class_numbers(asked.labels, examples.classes, query).tolist()
        adapted = adapt_to_images(
            trained.meta,
            examples,
            steps=number,
            classifier=chosen,
            validate=True,
            rate_multiplier=rate_multiplier,
            background=trained.background,
            none=none_of_these,
            progress=progress,
        )
        found = support_report(adapted, labelled.files, known)
        described = trained.describe()
        module, card = make_deployable(
            adapted, trained.preprocessing, run=described["run"], config=described["config"]
        )
        answers, scores = None, None
        if pixels is not None and transductive:
            images = torch.from_numpy(trained.preprocessing.normalise(pixels)).to(trained.meta.device)
            answers = adapted.probabilities(images, transductive).tolist()
        elif pixels is not None:
            given = deployed(module, card).answers(pixels, progress)
            answers = given.probabilities.tolist()
            scores = None if given.none is None else given.none.tolist()
        weights = save_adapted(out, module, card)
        write_json(out / "report.json", to_json(adapted, found))
    if asked is not None and answers is not None:
        predictions = Predictions(examples.classes, asked.files, answers, asked.labels, scores)
        predictions.show(format)
        if expected is not None:
            _show_confusion(Confusion.of(examples.classes, expected, predictions.numbers()), format, out)
    screen = console(stderr=True)
    if asked is not None and pixels is not None:
        pairs = same_images(labelled.files, known, asked.files, pixels)
        for line in repeated(pairs, "its answer says nothing about new images"):
            screen.print(line)
    for shown in report(adapted, found, weights, transductive):
        screen.print(shown)
    if export:
        write_exports(export, module, card, known[:CHECKED_IMAGES], runtime)


def _number(steps: str) -> int:
    if not (steps.isascii() and steps.isdecimal()):
        raise FirststepError(f"--steps takes a number or auto, not {steps!r}")
    return int(steps)


def _chosen(classifier: Classifier, steps: int | None, transductive: bool) -> Classifier:
    for given, flag in ((steps is not None, "--steps"), (transductive, "--transductive")):
        if given and classifier not in ("auto", STEPS):
            raise FirststepError(f"{flag} is for the adapted network, not for --classifier {classifier}")
    return "steps" if steps is not None or transductive else classifier


def _show_confusion(confusion: Confusion, format: str, out: Path) -> None:
    """Print it on standard output, or on standard error if the output is for programs."""
    path = out / "confusion.png"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font lacks
        save_figure(confusion_figure(confusion), path)
    words = (
        f"accuracy {100 * confusion.accuracy:.1f} % ({confusion.right} of {confusion.total} right); "
        f"figure: {path}"
    )
    screen = console(stderr=format != "table")
    screen.print(render(confusion.table()))
    screen.print(words)
