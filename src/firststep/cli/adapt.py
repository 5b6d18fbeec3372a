"""``firststep adapt``: adapt a trained model to your own images.

The options are here, and the work is in :mod:`firststep.cli.adapt_images`: the help does not wait for torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from firststep.cli.run_argument import A_RUN
from firststep.errors import FirststepError

Classifier = Literal["auto", "steps", "nearest-means", "ridge", "logistic", "average"]
Format = Literal["table", "csv", "json"]
TEXTS = "builtin:texts"
"""The model of texts, which is no run: nothing was trained."""


@dataclass(frozen=True)
class Wishes:
    """What the command line asks for, besides the model and the images."""

    classifier: Classifier
    steps: int | None
    rate_multiplier: float
    transductive: bool
    none_of_these: bool
    cache: bool
    export: tuple[Path, ...]
    runtime: Path | None
    format: Format
    out: Path


def adapt(
    run: Annotated[
        str | None,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="RUN", help=f"{A_RUN}, or {TEXTS} to classify texts. Left out with --network."),
    ] = None,
    /,
    *,
    support: Annotated[Path, tyro.conf.arg(metavar="FOLDER|CSV")],
    query: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    network: Annotated[str | None, tyro.conf.arg(metavar="timm:NAME|hf:NAME")] = None,
    pretrained: Annotated[str | None, tyro.conf.arg(metavar="FILE|default")] = None,
    image_size: int | None = None,
    classifier: Classifier = "auto",
    steps: Annotated[str, tyro.conf.arg(metavar="N|auto")] = "auto",
    rate_multiplier: float = 1.0,
    transductive: bool = False,
    none_of_these: bool = True,
    cache: bool = True,
    export: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE")] = (),
    runtime: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None,
    format: Format = "table",
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
            image and label, whose paths are relative to the file. For texts, a .csv file with the columns
            text and label. A model with a shared or zero head takes
            any number of classes; others take at most the trained number.
        query: Image, folder of images, or labelled images like those of --support, to classify. For texts, a
            .csv file with the column text, or a .txt file with one text per line.
        network: Pretrained network of timm or transformers, instead of RUN; its features stay fixed.
        pretrained: Weights of --network: a file, or default for those that its library has or downloads.
        image_size: Side of the images of --network in pixels; its own if left out.
        classifier: steps is the adapted network. nearest-means, ridge and logistic are fitted to its
            features, and average is the mean of these three. auto is average for fixed features, such as
            those of photos. Otherwise auto chooses by accuracy on held-out support images, and prefers the
            adapted network if accuracies are equal or --steps is a number.
        steps: Number of inner steps; auto chooses it by cross-validation on the support images.
        rate_multiplier: Multiply the length of inner steps by this.
        transductive: Let the query images share batch-norm statistics.
        none_of_these: Mark images that belong to no class, if the features are fixed.
        cache: Keep the features of images in the user's cache folder, to compute none twice.
        export: Also write the classifier with its preprocessing to files that end in .onnx, .pt2,
            .safetensors, or .html for a page that classifies in a browser, offline.
        runtime: Folder or .tgz of the npm package onnxruntime-web, which an .html file contains. By
            default npm fetches it once (33 MB).
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
    if (run is None) == (network is None):
        raise FirststepError("name a RUN such as builtin:photos, or a --network: one of the two")
    if network is None and (pretrained is not None or image_size is not None):
        flag = "--image-size" if pretrained is None else "--pretrained"
        raise FirststepError(f"{flag} goes with --network; {run} has its own")
    if network is not None and pretrained is None:
        raise FirststepError(f"--network {network} needs --pretrained: a file of weights, or default")
    wishes = Wishes(
        classifier=chosen,
        steps=number,
        rate_multiplier=rate_multiplier,
        transductive=transductive,
        none_of_these=none_of_these,
        cache=cache,
        export=export,
        runtime=runtime,
        format=format,
        out=out,
    )
    if run == TEXTS:
        from firststep.cli.adapt_texts import adapt_to_texts

        if chosen == "steps":
            raise FirststepError(f"{TEXTS} has fixed features: leave out --steps and --transductive")
        if runtime is not None:
            raise FirststepError("--runtime is for an --export file that ends in .html")
        adapt_to_texts(support, query, wishes)
        return
    from firststep.cli.adapt_images import adapt_to_files
    from firststep.training import AdaptableNetwork, load_trained, pretrained_network

    def source() -> AdaptableNetwork:
        if network is not None and pretrained is not None:
            return pretrained_network(network, pretrained, image_size=image_size, device=device)
        assert run is not None
        return AdaptableNetwork.of(load_trained(run, which=which, device=device))

    adapt_to_files(source, support, query, wishes)


def _number(steps: str) -> int:
    if not (steps.isascii() and steps.isdecimal()):
        raise FirststepError(f"--steps takes a number or auto, not {steps!r}")
    return int(steps)


def _chosen(classifier: Classifier, steps: int | None, transductive: bool) -> Classifier:
    for given, flag in ((steps is not None, "--steps"), (transductive, "--transductive")):
        if given and classifier not in ("auto", "steps"):
            raise FirststepError(f"{flag} is for the adapted network, not for --classifier {classifier}")
    return "steps" if steps is not None or transductive else classifier
