"""``firststep adapt``: a trained model on your own images."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from firststep.cli.terminal import console, render
from firststep.errors import FirststepError
from firststep.evaluation import AdaptedModel, adapt_to_images, image_files, load_images, load_support
from firststep.training import load_trained
from firststep.utils import Table, check_folder_writable


def adapt(
    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")],
    /,
    *,
    support: Annotated[Path, tyro.conf.arg(metavar="FOLDER")],
    query: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    steps: Annotated[str, tyro.conf.arg(metavar="N|auto")] = "auto",
    rate_multiplier: float = 1.0,
    transductive: bool = False,
    format: Literal["table", "csv", "json"] = "table",
    which: Literal["best", "last"] = "best",
    device: str | None = None,
    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("adapted"),
) -> None:
    """Adapt a trained model to a few labelled images and classify others.

    Each query image is classified together with the support images and no other query, so that one
    query's answer never depends on another; --transductive classifies all queries in one batch instead.

    Args:
        run: Folder of a run, or builtin:glyphs.
        support: Folder with one subfolder for each class, with a few images each. Any number of classes for
            a model with a shared or zero head, otherwise at most as many as it was trained for.
        query: Image, or folder of images, to classify.
        steps: Inner steps to take; auto chooses by cross-validation on the support images.
        rate_multiplier: Take inner steps so many times as long.
        transductive: Let the query images share batch-norm statistics.
        format: Of the predictions on standard output.
        which: Checkpoint: best by validation, or last.
        device: cpu, cuda, ...; as trained if left out.
        out: Folder for the adapted weights.
    """
    number = None if steps == "auto" else _number(steps)
    check_folder_writable(out)
    trained = load_trained(run, which=which, device=device)
    files = image_files(query) if query is not None else []
    images = load_images(files, trained.preprocessing, trained.meta.device) if files else None
    examples = load_support(support, trained.meta, trained.preprocessing)
    adapted = adapt_to_images(trained.meta, examples, steps=number, rate_multiplier=rate_multiplier)
    path = adapted.save(out, trained.describe())
    print(f"{_how(adapted)}; weights: {path}", file=sys.stderr)
    if images is not None:
        rows = _predictions(adapted, files, adapted.probabilities(images, transductive).tolist())
        _print(rows, adapted.support.classes, format)


def _number(steps: str) -> int:
    if not steps.isdecimal():
        raise FirststepError(f"--steps takes a number or auto, not {steps!r}")
    return int(steps)


def _how(adapted: AdaptedModel) -> str:
    choice = adapted.choice
    taken = f"adapted to {len(adapted.support.classes)} classes in {choice.steps} steps"
    if choice.folds:
        return f"{taken} (chosen on {choice.folds} held-out folds)"
    return taken


def _predictions(
    adapted: AdaptedModel, files: list[Path], probabilities: list[list[float]]
) -> list[dict[str, Any]]:
    rows = []
    for file, row in zip(files, probabilities, strict=True):
        best = max(range(len(row)), key=row.__getitem__)
        by_class = dict(zip(adapted.support.classes, row, strict=True))
        rows.append(
            {
                "image": str(file),
                "class": adapted.support.classes[best],
                "probability": row[best],
                "all": by_class,
            }
        )
    return rows


def _print(rows: list[dict[str, Any]], classes: list[str], format: str) -> None:
    if format == "json":
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif format == "csv":
        table = csv.writer(sys.stdout, lineterminator="\n")
        table.writerow(["image", "class", "probability", *classes])
        for row in rows:
            table.writerow([row["image"], row["class"], row["probability"], *row["all"].values()])
    else:
        shown = Table(["image", "class", "probability"], left_aligned=2)
        for row in rows:
            shown.add_row(row["image"], row["class"], f"{100 * row['probability']:.1f} %")
        console().print(render(shown))
