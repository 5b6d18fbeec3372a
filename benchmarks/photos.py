"""Photographs: accuracy before and after, the promise beside what is found, and "none of these".

    python benchmarks/photos.py --data-path CIFAR --unrelated PICTURES --out results/photos/cifar-fs-3

All classifiers get the same episodes of the CIFAR-FS test classes (or of `--split val`, where everything was
chosen). "Before" is EfficientNet-Lite0 at 128 px, as builtin:photos was. "none of these" is asked about the
other classes of the split and about unrelated images: drawn letters, textures, blank images and noise, and
the pictures of a folder, such as skimage/data in the wheel of scikit-image. Features are computed once.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from firststep.data import IMAGE_ENDINGS, entries, open_dataset
from firststep.evaluation import half_width
from firststep.evaluation._few_shot import PROBES
from firststep.evaluation._internal import NONE_LIMIT, fit_few_shot
from firststep.training import collect_provenance, load_trained
from photo_features import BACKGROUND, BEFORE, NOW, SMALL, PhotoNetwork, Photos

SEED = 36
OF_EACH_KIND = 60
"""Number of unrelated images of each kind."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-path", required=True, type=Path)
    parser.add_argument("--cache", type=Path, default=Path("photo-features"), help="folder for features")
    parser.add_argument("--unrelated", type=Path, help="folder with pictures of other things")
    parser.add_argument("--split", default="test", choices=["val", "test"])
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    photos = Photos(options.data_path, options.cache)
    splits = {network: photos.features(network, options.split) for network in (BEFORE, SMALL, NOW)}
    unrelated = {
        kind: photos.of(NOW, [partial(Image.Image.copy, image) for image in images], f"unrelated-{kind}")
        for kind, images in unrelated_images(options.unrelated).items()
    }
    classes = len(splits[NOW])
    rows: list[list[object]] = []
    for ways, shots in ((5, 1), (5, 2), (5, 3), (5, 5), (5, 10), (10, 5), (classes, 5)):
        compared = shots in (1, 5)
        for network, features in splits.items():
            if network != NOW and not compared:
                continue
            drawn = episodes(features.shape, ways, shots, options.episodes // (1 if ways <= 5 else 2))
            found = [_measure(features, network, episode, unrelated, compared) for episode in drawn]
            for measure in found[0]:
                values = np.array([each[measure] for each in found])
                mean, half = float(values.mean()), float(half_width(values))
                rows.append([ways, shots, network.name, measure, round(mean, 4), round(half, 4), len(values)])
                print(*rows[-1], sep="\t", flush=True)
    write_settings(options.out, "benchmarks/photos.py")
    with open(options.out / "numbers.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["ways", "shots", "features", "measure", "mean", "half_width", "episodes"])
        table.writerows(rows)


def write_settings(out: Path, script: str) -> None:
    """Write how a result was made, without folders of this machine."""
    out.mkdir(parents=True, exist_ok=True)
    given = [_public(word) for word in sys.argv[1:]]
    settings = {"command": shlex.join(["python", script, *given]), "seed": SEED, **collect_provenance()}
    (out / "settings.json").write_text(json.dumps(settings, indent=2) + "\n")


def _public(word: str) -> str:
    """Return a word of the command line, or the last part of a path of this machine."""
    return Path(word).name if Path(word).is_absolute() else word


@dataclass(frozen=True)
class Episode:
    """Rows of features [classes · images, d]."""

    support: np.ndarray
    """[ways, shots]"""
    query: np.ndarray
    others: np.ndarray
    """A third of the images of the other classes."""

    @property
    def ways(self) -> int:
        return len(self.support)

    @property
    def shots(self) -> int:
        return self.support.shape[1]

    @property
    def support_labels(self) -> Tensor:
        return torch.arange(self.ways).repeat_interleave(self.shots)

    @property
    def query_labels(self) -> Tensor:
        return torch.arange(self.ways).repeat_interleave(self.query.shape[1])


def episodes(shape: tuple[int, ...], ways: int, shots: int, count: int) -> Iterator[Episode]:
    """Draw episodes of features [classes, images, d]."""
    classes, images = shape[:2]
    generator = np.random.default_rng([SEED, ways, shots])
    for _ in range(count):
        order = generator.permutation(classes)
        drawn = np.stack([each * images + generator.permutation(images) for each in order])
        yield Episode(drawn[:ways, :shots], drawn[:ways, shots:], drawn[ways:, ::3])


def unrelated_images(folder: Path | None) -> dict[str, list[Image.Image]]:
    """Return images of no class, by kind: drawn ones, and five views of each picture in a folder."""
    generator = np.random.default_rng(SEED)
    letters = open_dataset("glyphs").split("test").images
    rows = generator.choice(len(letters), OF_EACH_KIND, replace=False)
    found = {
        "letters": [Image.fromarray(255 - letters[row].squeeze()).convert("RGB") for row in np.sort(rows)],
        "textures": [_texture(generator) for _ in range(OF_EACH_KIND)],
        "plain": [_plain(generator, noise=number % 2 == 1) for number in range(OF_EACH_KIND)],
    }
    if folder is not None:
        found["pictures"] = [view for file in entries(folder) for view in _views(file)]
    return found


def _texture(generator: np.random.Generator) -> Image.Image:
    """Return stripes, checks or dots in two colours."""
    y, x = np.mgrid[:128, :128] / 128
    turn, size = generator.uniform(0, np.pi), generator.uniform(4, 14)
    along, across = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    first, second = np.sin(2 * np.pi * size * along), np.sin(2 * np.pi * size * across)
    wave = (first, first * second, first + second - 1)[generator.integers(3)]
    colours = generator.integers(0, 256, (2, 3))
    return Image.fromarray(colours[(wave > 0).astype(int)].astype(np.uint8))


def _plain(generator: np.random.Generator, noise: bool) -> Image.Image:
    pixels = np.full((128, 128, 3), generator.integers(0, 256, 3))
    if noise:
        pixels = pixels + generator.normal(0, 40, pixels.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def _views(file: Path) -> list[Image.Image]:
    """Return a picture and its four quarters; nothing if it is none or small."""
    if file.suffix.lower() not in IMAGE_ENDINGS:
        return []
    try:
        picture = Image.open(file).convert("RGB")
    except (UnidentifiedImageError, OSError):
        return []
    width, height = picture.size
    if min(width, height) < 128:
        return []
    x, y = width // 2, height // 2
    boxes = [(0, 0, x, y), (x, 0, width, y), (0, y, x, height), (x, y, width, height)]
    return [picture, *(picture.crop(box) for box in boxes)]


def _measure(
    features: np.ndarray,
    network: PhotoNetwork,
    episode: Episode,
    unrelated: dict[str, np.ndarray],
    compared: bool,
) -> dict[str, float]:
    flat = torch.from_numpy(features.reshape(-1, features.shape[-1]))
    support, query = flat[episode.support.ravel()], flat[episode.query.ravel()]
    labels, asked, ways = episode.support_labels, episode.query_labels, episode.ways
    background = load_trained(BACKGROUND[network]).background if network in BACKGROUND else None
    fitted = fit_few_shot(support, labels, background=background)
    outputs = fitted.head(query)
    accuracy = (outputs[:, :ways].argmax(1) == asked).double().mean().item()
    found = {"average": accuracy}
    for name, probe in PROBES.items() if compared else ():
        answers = probe(support, labels)(query).argmax(1)
        found[f"{name} on plain features"] = (answers == asked).double().mean().item()
    if network != NOW:
        return found
    if fitted.held_out is not None:
        promise = fitted.held_out.promise
        low, high = promise.interval
        found |= {"promised": promise.expected, "held out": promise.accuracy, "width": high - low}
        found |= {"within the interval": float(low <= accuracy <= high)}
        found |= {"above it": float(accuracy > high), "below it": float(accuracy < low)}
    if not fitted.head.form.has_none:
        return found
    known = outputs[:, -1]
    found["none: kept"] = (known <= NONE_LIMIT).double().mean().item()
    strangers = {kind: torch.from_numpy(images) for kind, images in unrelated.items()}
    if len(episode.others):
        strangers = {"other classes": flat[episode.others.ravel()], **strangers}
    for kind, images in strangers.items():
        strange = fitted.head(images)[:, -1]
        at95 = known.double().quantile(0.95)
        greater = (strange[:, None] > known).double() + 0.5 * (strange[:, None] == known).double()
        found[f"{kind}: AUROC"] = greater.mean().item()
        found[f"{kind}: false accepts"] = (strange <= NONE_LIMIT).double().mean().item()
        found[f"{kind}: false accepts at 95 % kept"] = (strange <= at95).double().mean().item()
    return found


if __name__ == "__main__":
    main()
