"""What ``firststep adapt`` says about the classifier that it chose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table as ScreenTable

from firststep.cli.terminal import render
from firststep.evaluation import AdaptedModel, CrossValidation
from firststep.evaluation._internal import FEWEST_TO_CALIBRATE, STEPS
from firststep.utils import Cell, Table, counted


def report(adapted: AdaptedModel, weights: Path, transductive: bool) -> Iterator[str | ScreenTable]:
    """Lines and a table, in the order to show them."""
    validation = adapted.validation
    yield f"{_how(adapted)}; written: {weights}"
    if validation is None:
        taken = f"; steps taken: {adapted.choice.steps}, as trained or as --steps asked for"
        yield (
            "no cross-validation: a class has one image only, so nothing can be held out"
            f"{taken if adapted.classifier == STEPS else ''}"
        )
    else:
        yield render(_table(adapted.classifier, validation))
    yield _calibration(adapted, transductive)


def _how(adapted: AdaptedModel) -> str:
    classes, choice = len(adapted.support.classes), adapted.choice
    if adapted.classifier != STEPS:
        return f"adapted to {classes} classes by {adapted.classifier} on the features of the network"
    chosen = f" (chosen on {choice.folds} held-out folds)" if choice.losses else ""
    return f"adapted to {classes} classes in {counted(choice.steps, 'step')}{chosen}"


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
    if adapted.temperature is not None:
        count = len(adapted.support.labels)
        return (
            f"probabilities are calibrated on {count} held-out support images "
            f"(temperature {adapted.temperature:.2f})"
        )
    if adapted.validation is None:
        return "probabilities are not calibrated: nothing could be held out"
    return (
        f"probabilities are not calibrated: that takes {FEWEST_TO_CALIBRATE} support images or more, with "
        "finite outputs"
    )
