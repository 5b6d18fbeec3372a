"""Report on the classifier that ``firststep adapt`` made: one screen, and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table as ScreenTable

from firststep.cli.terminal import render
from firststep.evaluation import AdaptedModel, CrossValidation
from firststep.evaluation._internal import AVERAGE, FEWEST_TO_CALIBRATE, STEPS, Pair, SupportReport
from firststep.utils import Cell, Table, counted

MOST_LINES = 3
"""Number of confusions and repeated images on the screen; the JSON file has all."""


def report(
    adapted: AdaptedModel, found: SupportReport, weights: Path, transductive: bool
) -> Iterator[str | ScreenTable]:
    """Yield lines and a table, in the order of the screen."""
    yield f"{_how(adapted)}; written: {weights}"
    taken = f"; steps taken: {adapted.choice.steps}, as trained or as --steps asked for"
    every = "every class" if adapted.few_shot is not None else "a class"
    yield accuracy_line(found, every) + (
        taken if found.accuracy is None and adapted.classifier == STEPS else ""
    )
    if adapted.few_shot is None and adapted.validation is not None:
        yield render(_table(adapted.classifier, adapted.validation))
    yield from findings(found, "image")
    yield _calibration(adapted, transductive)
    yield _none(adapted)
    folder = weights.parent
    yield f"use it: firststep predict {folder} IMAGES; details: {folder / 'report.json'}"


def findings(found: SupportReport, what: str) -> Iterator[str]:
    """Lines about confusions, samples to check and what to add; ``what`` names a sample."""
    for each in found.confused[:MOST_LINES]:
        share = f"{each.images} of {each.of} held-out {what}s"
        yield f"confused: {each.label} taken for {each.taken_for}, {share}"
    for suspect in found.check:
        likely = f"{100 * suspect.probability:.0f} % {suspect.looks_like} by the others"
        yield f"check: {suspect.image} is labelled {suspect.label} but is {likely}"
    yield from repeated(found.repeated, "the support set has it twice", what)
    for line in found.add_next:
        yield f"add next: {line}"


def to_json(adapted: AdaptedModel, found: SupportReport) -> dict[str, Any]:
    """Return the report as plain values."""
    return {
        **support_values(found),
        "steps": adapted.choice.steps,
        "calibrated": adapted.is_calibrated,
        "none_of_these": adapted.head is not None and adapted.head.has_none,
    }


def support_values(found: SupportReport) -> dict[str, Any]:
    """Return what was found in a support set as plain values."""
    accuracy = found.accuracy
    return {
        **asdict(found),
        "accuracy": None
        if accuracy is None
        else {
            "expected": accuracy.expected,
            "interval": list(accuracy.interval),
            "right": accuracy.right,
            "held_out": accuracy.total,
        },
    }


def repeated(pairs: list[Pair], why: str, what: str = "image") -> Iterator[str]:
    for pair in pairs[:MOST_LINES]:
        kind = f"the same {what} as" if pair.identical else f"nearly the same {what} as"
        yield f"warning: {pair.second} is {kind} {pair.first}: {why}"
    if len(pairs) > MOST_LINES:
        yield f"warning: {len(pairs) - MOST_LINES} more such pairs"


def _how(adapted: AdaptedModel) -> str:
    classes, choice = len(adapted.support.classes), adapted.choice
    images = counted(len(adapted.support.labels), "image")
    if adapted.classifier == AVERAGE:
        return f"adapted to {classes} classes, {images}, by averaged probes on the features of the network"
    if adapted.classifier != STEPS:
        return f"adapted to {classes} classes by {adapted.classifier} on the features of the network"
    chosen = f" (chosen on {choice.folds} held-out folds)" if choice.losses else ""
    return f"adapted to {classes} classes in {counted(choice.steps, 'step')}{chosen}"


def accuracy_line(found: SupportReport, every: str = "every class", what: str = "image") -> str:
    """Return the accuracy to expect; ``every`` says which classes have too few samples to hold one out."""
    if found.accuracy is None:
        return f"no accuracy can be estimated: {every} has one {what} only, so nothing can be held out"
    low, high = found.accuracy.interval
    return (
        f"expected accuracy {100 * found.accuracy.expected:.1f} % (95 % interval {100 * low:.0f} to "
        f"{100 * high:.0f} %): {found.accuracy.right} of {found.accuracy.total} held-out {what}s right"
    )


def _table(chosen: str, validation: CrossValidation) -> Table:
    count = len(validation.labels)
    title = f"{count} support images, each held out once in {validation.folds} folds"
    table = Table(["classifier", "cross-validated accuracy"], title=title)
    for name in validation.log_probabilities:
        words = f"adapted network, {counted(validation.choice.steps, 'step')}" if name == STEPS else name
        accuracy = validation.accuracy(name)
        cells = (words, f"{100 * accuracy:.1f} % ({round(accuracy * count)} right)")
        table.add_row(*(Cell(text, bold=name == chosen) for text in cells))
    return table


def _calibration(adapted: AdaptedModel, transductive: bool) -> str:
    if transductive:
        return "probabilities are not calibrated: --transductive answers were never held out"
    if adapted.is_calibrated:
        count = len(adapted.support.labels)
        temperature = "" if adapted.temperature is None else f" (temperature {adapted.temperature:.2f})"
        return f"probabilities are calibrated on {count} held-out support images{temperature}"
    if adapted.promise is None:
        return "probabilities are not calibrated: nothing could be held out"
    return (
        f"probabilities are not calibrated: that takes {FEWEST_TO_CALIBRATE} support images or more, with "
        "finite outputs"
    )


def _none(adapted: AdaptedModel) -> str:
    if adapted.head is None or not adapted.head.has_none:
        return "images of no class get one anyway: this classifier does not say none of these"
    if adapted.promise is None:
        return "an image far from all classes is none of these: a rough guess with one image per class"
    return "an image that is more unusual than 95 % of the held-out support images is none of these"
