"""The work of ``firststep adapt`` on images: adapt, classify, save, report and export."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from firststep.cli.adapt import Wishes
from firststep.cli.adaptation_report import repeated, report, to_json
from firststep.cli.exports import require_exports, write_exports
from firststep.cli.predictions import Predictions
from firststep.cli.progress import progress_bar
from firststep.cli.terminal import console, render
from firststep.deployment import deployed, make_deployable, save_adapted
from firststep.deployment._internal import FixedFeatures, answers_from_features
from firststep.evaluation import Confusion, adapt_to_images, confusion_figure, query_files
from firststep.evaluation._internal import (
    STEPS,
    class_numbers,
    has_fixed_features,
    load_pixels,
    same_images,
    support_classes,
    support_files,
    support_report,
    to_support,
)
from firststep.plotting import save_figure
from firststep.training import AdaptableNetwork
from firststep.utils import check_folder_writable, write_json

CHECKED_IMAGES = 8
"""Number of support images on which an exported file must give the same probabilities."""


def adapt_to_files(
    load: Callable[[], AdaptableNetwork], support: Path, query: Path | None, wishes: Wishes
) -> None:
    """Adapt what ``load`` returns to the images of ``support`` and classify those of ``query``."""
    out = wishes.out
    check_folder_writable(out)
    require_exports(wishes.export, wishes.runtime)
    source = load()
    recipe = source.preprocessing
    with progress_bar() as progress:
        asked = query_files(query) if query is not None else None
        pixels = None if asked is None else load_pixels(asked.files, recipe, progress)
        labelled = support_files(support)
        support_classes(labelled, support, source.meta)
        known = load_pixels(labelled.files, recipe, progress)
        examples = to_support(labelled, support, source.meta, recipe, known)
        fixed = _fixed_features(source, wishes)
        if fixed is not None:
            examples = replace(examples, features=fixed(known, progress))
        expected = None
        if query is not None and asked is not None and asked.labels is not None:
            expected = class_numbers(asked.labels, examples.classes, query).tolist()
        adapted = adapt_to_images(
            source.meta,
            examples,
            steps=wishes.steps,
            classifier=wishes.classifier,
            validate=True,
            rate_multiplier=wishes.rate_multiplier,
            background=source.background,
            none=wishes.none_of_these,
            progress=progress,
        )
        found = support_report(adapted, labelled.files, known)
        module, card = make_deployable(adapted, recipe, run=source.name, config=source.config)
        answers, scores = None, None
        if pixels is not None and wishes.transductive:
            images = torch.from_numpy(recipe.normalise(pixels)).to(source.meta.device)
            answers = adapted.probabilities(images, transductive=True).tolist()
        elif pixels is not None:
            if fixed is not None:
                last = source.meta.functional.classifier
                given = answers_from_features(module, last, fixed(pixels, progress))
            else:
                given = deployed(module, card).answers(pixels, progress)
            answers = given.probabilities.tolist()
            scores = None if given.none is None else given.none.tolist()
        weights = save_adapted(out, module, card)
        write_json(out / "report.json", to_json(adapted, found))
    if asked is not None and answers is not None:
        predictions = Predictions(examples.classes, asked.files, answers, asked.labels, scores)
        predictions.show(wishes.format)
        if expected is not None:
            _show_confusion(
                Confusion.of(examples.classes, expected, predictions.numbers()), wishes.format, out
            )
    screen = console(stderr=True)
    if asked is not None and pixels is not None:
        pairs = same_images(labelled.files, known, asked.files, pixels)
        for line in repeated(pairs, "its answer says nothing about new images"):
            screen.print(line)
    for shown in report(adapted, found, weights, wishes.transductive):
        screen.print(shown)
    if wishes.export:
        write_exports(wishes.export, module, card, known[:CHECKED_IMAGES], wishes.runtime)


def _fixed_features(source: AdaptableNetwork, wishes: Wishes) -> FixedFeatures | None:
    """Return the network's features, if adaptation does not change them."""
    if wishes.transductive or wishes.classifier == STEPS or not has_fixed_features(source.meta):
        return None
    return FixedFeatures(source.meta, source.preprocessing, kept=wishes.cache)


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
