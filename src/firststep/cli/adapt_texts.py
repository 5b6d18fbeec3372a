"""The work of ``firststep adapt builtin:texts``: classify texts by a few labelled ones."""

from __future__ import annotations

from pathlib import Path

from firststep.cli.adapt import Wishes
from firststep.cli.adaptation_report import accuracy_line, findings, support_values
from firststep.cli.predictions import Predictions
from firststep.cli.progress import progress_bar
from firststep.cli.terminal import console, render
from firststep.cli.text_files import asked_texts, labelled_texts
from firststep.deployment._internal import (
    TEXT_ENDINGS,
    TextCard,
    TextClassifier,
    TextEncoder,
    export_texts,
    require_exporter,
)
from firststep.errors import FirststepError
from firststep.evaluation import Confusion
from firststep.evaluation._internal import (
    AVERAGE,
    NONE_LIMIT,
    PROBES,
    Pair,
    SupportReport,
    class_numbers,
    examined,
    fit_few_shot,
)
from firststep.utils import check_folder_writable, counted, write_json


def adapt_to_texts(support: Path, query: Path | None, wishes: Wishes) -> None:
    """Adapt to the labelled texts of ``support`` and classify those of ``query``."""
    check_folder_writable(wishes.out)
    for path in wishes.export:
        if path.suffix.lower() not in TEXT_ENDINGS:
            raise FirststepError(f"{path}: classifiers of texts are exported to {' or '.join(TEXT_ENDINGS)}")
        require_exporter(path)
    known = labelled_texts(support)
    assert known.labels is not None
    classes = sorted(set(known.labels))
    if len(classes) < 2:
        raise FirststepError(
            f"{support} has {counted(len(classes), 'label')}; a classifier needs two or more"
        )
    labels = class_numbers(known.labels, classes, support)
    asked = None if query is None else asked_texts(query)
    expected = None
    if query is not None and asked is not None and asked.labels is not None:
        expected = class_numbers(asked.labels, classes, query).tolist()
    encode = TextEncoder()
    chosen = AVERAGE if wishes.classifier == "auto" else wishes.classifier
    with progress_bar() as progress:
        fitted = fit_few_shot(
            encode(known.texts, progress),
            labels,
            probes=PROBES if chosen == AVERAGE else {chosen: PROBES[chosen]},
            none=wishes.none_of_these,
            progress=progress,
        )
        features = None if asked is None else encode(asked.texts, progress)
    held_out = fitted.held_out
    promise = None if held_out is None else held_out.promise
    found = examined(
        classes,
        labels,
        known.texts,
        classifier=chosen,
        accuracy=promise,
        held_out=None if held_out is None else (held_out.rows, held_out.labels, held_out.probabilities),
        repeated=_repeated(known.texts),
        what="text",
    )
    has_none = fitted.head.form.has_none
    card = TextCard(
        classes=classes,
        classifier=chosen,
        support_texts=len(known.texts),
        cross_validated_accuracy=None if promise is None else promise.expected,
        accuracy_interval=None if promise is None else promise.interval,
        head=fitted.head.form,
        none_limit=NONE_LIMIT if has_none else None,
    )
    classifier = TextClassifier(card, fitted.head)
    weights = classifier.save(wishes.out)
    write_json(wishes.out / "report.json", {**support_values(found), "none_of_these": has_none})
    if asked is not None and features is not None:
        answers = classifier.answers(features)
        scores = None if answers.none is None else answers.none.tolist()
        predictions = Predictions(
            classes, asked.texts, answers.probabilities.tolist(), asked.labels, scores, what="text"
        )
        predictions.show(wishes.format)
        if expected is not None:
            confusion = Confusion.of(classes, expected, predictions.numbers())
            screen = console(stderr=wishes.format != "table")
            screen.print(render(confusion.table()))
            screen.print(
                f"accuracy {100 * confusion.accuracy:.1f} % ({confusion.right} of {confusion.total} right)"
            )
    _tell(found, weights, has_none)
    for path in wishes.export:
        with progress_bar() as progress:
            progress(f"exporting {path.name}", 0, 1)
            export_texts(path, classifier, encode, known.texts[:8])
        console(stderr=True).print(f"written: {path}")


def _tell(found: SupportReport, weights: Path, has_none: bool) -> None:
    screen = console(stderr=True)
    texts = counted(sum(found.images.values()), "text")
    screen.print(
        f"adapted to {len(found.images)} classes, {texts}, by {found.classifier} on sentence features; "
        f"written: {weights}"
    )
    screen.print(accuracy_line(found, what="text"))
    for line in findings(found, "text"):
        screen.print(line)
    if has_none:
        screen.print("a text that is more unusual than 95 % of the held-out texts is none of these")
    screen.print(f"use it: firststep predict {weights.parent} new.csv")


def _repeated(texts: list[str]) -> list[Pair]:
    """Return pairs of texts that are equal but for case and spaces."""
    first: dict[str, str] = {}
    pairs = []
    for text in texts:
        plain = " ".join(text.casefold().split())
        if plain in first:
            pairs.append(Pair(first[plain], text, identical=True))
        first.setdefault(plain, text)
    return pairs
