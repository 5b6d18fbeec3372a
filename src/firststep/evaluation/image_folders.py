"""Read the user's own images: one folder per class or a CSV file of labels, and images to classify."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from firststep.data import IMAGE_ENDINGS, Preprocessing, decode, entries, read_columns, require_regular
from firststep.errors import FirststepError
from firststep.meta_learner import MetaLearner

Progress = Callable[[str, int, int], None]
"""Called with (activity, done, total)."""


@dataclass(frozen=True)
class ImageSupport:
    """Labelled images, preprocessed for a network.

    Examples:
        >>> from firststep.evaluation import ImageSupport
        >>> ImageSupport(list("abcde"), glyph_task.support_x, glyph_task.support_y).images.shape
        torch.Size([10, 1, 16, 16])
    """

    classes: list[str]
    images: Tensor
    """Images, or the features of a frozen body once :func:`adapt_to_images` has computed them."""
    labels: Tensor
    features: Tensor | None = None
    """Features of the images, if they are fixed and have been computed."""


@dataclass(frozen=True)
class ImageFiles:
    """Image files; ``labels`` has the class name per file, if known.

    Examples:
        >>> from firststep.evaluation import query_files
        >>> query_files(Path("letters")).labels[:3]
        ['a', 'a', 'b']
    """

    files: list[Path]
    labels: list[str] | None = None


def image_files(path: Path) -> list[Path]:
    """Return an image file, or all images directly in a folder, sorted by name, without hidden files."""
    if not path.is_dir():
        require_regular(path)
        return [path]
    files = _images_in(path)
    if not files:
        endings = ", ".join(sorted(IMAGE_ENDINGS))
        raise FirststepError(f"{path} has no images (file names must end in {endings})")
    return files


def query_files(path: Path) -> ImageFiles:
    """Find images to classify: a file, a folder of images, or labelled images as in :func:`support_files`.

    Examples:
        >>> from firststep.evaluation import query_files
        >>> [file.name for file in query_files(Path("letters/a")).files]
        ['0.png', '1.png']
    """
    if _is_csv(path):
        return _listed(path)
    if path.is_dir() and not _images_in(path) and _folders_in(path):
        return _in_class_folders(_folders_in(path))
    return ImageFiles(image_files(path))


def support_files(path: Path) -> ImageFiles:
    """Find labelled images: a folder with one subfolder per class, or a CSV file of ``image,label``."""
    if _is_csv(path):
        return _listed(path)
    if not path.is_dir():
        raise FirststepError(
            f"{path} is not a folder; a support set is a folder with one subfolder per class, or a .csv file"
        )
    return _in_class_folders(_folders_in(path))


def load_images(
    files: Sequence[Path],
    preprocessing: Preprocessing,
    device: torch.device,
    progress: Progress | None = None,
) -> Tensor:
    """Load images as normalised tensors [n, C, H, W].

    Examples:
        >>> from firststep.evaluation import load_images
        >>> load_images([Path("letters/a/0.png")], trained.preprocessing, torch.device("cpu")).shape
        torch.Size([1, 1, 16, 16])
    """
    pixels = load_pixels(files, preprocessing, progress)
    return torch.from_numpy(preprocessing.normalise(pixels)).to(device)


def load_pixels(
    files: Sequence[Path], preprocessing: Preprocessing, progress: Progress | None = None
) -> np.ndarray:
    """Load images as uint8 [n, H, W, C]."""
    decoded = []
    for number, file in enumerate(files, 1):
        decoded.append(decode(file, str(file), preprocessing))
        if progress is not None:
            progress("reading images", number, len(files))
    return np.stack(decoded)


def load_support(
    path: Path, meta: MetaLearner, preprocessing: Preprocessing, progress: Progress | None = None
) -> ImageSupport:
    """Load the support set that :func:`support_files` finds; classes are sorted by name.

    Examples:
        >>> from firststep.evaluation import load_support
        >>> support = load_support(Path("letters"), trained.meta, trained.preprocessing)
        >>> support.classes, support.images.shape
        (['a', 'b', 'c', 'd', 'e'], torch.Size([10, 1, 16, 16]))
    """
    found = support_files(path)
    support_classes(found, path, meta)
    return to_support(found, path, meta, preprocessing, load_pixels(found.files, preprocessing, progress))


def support_classes(found: ImageFiles, path: Path, meta: MetaLearner) -> list[str]:
    """Return the classes of labelled files, sorted by name; refuse a number that the learner cannot take."""
    assert found.labels is not None
    classes = sorted(set(found.labels))
    try:
        meta.for_classes(len(classes))
    except ValueError as error:
        kind = "classes" if _is_csv(path) else "class folders"
        names = f": {', '.join(classes)}" if classes else ""
        raise FirststepError(f"{path} has {len(classes)} {kind}{names}; {error}") from None
    return classes


def to_support(
    found: ImageFiles, path: Path, meta: MetaLearner, preprocessing: Preprocessing, pixels: np.ndarray
) -> ImageSupport:
    """Return the support set of labelled files whose pixels are loaded."""
    classes = support_classes(found, path, meta)
    images = torch.from_numpy(preprocessing.normalise(pixels)).to(meta.device)
    labels = class_numbers(found.labels or [], classes, path).to(meta.device)
    return ImageSupport(classes, images, labels)


def class_numbers(labels: Sequence[str], classes: Sequence[str], where: Path) -> Tensor:
    """Convert class names to their indices in ``classes``; error messages name ``where``."""
    place = {name: number for number, name in enumerate(classes)}
    strange = next((label for label in labels if label not in place), None)
    if strange is not None:
        raise FirststepError(
            f"{where}: {strange!r} is not among the classes of the support set: {', '.join(classes)}"
        )
    return torch.tensor([place[label] for label in labels])


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() == ".csv" and not path.is_dir()


def _images_in(folder: Path) -> list[Path]:
    return [file for file in entries(folder) if file.suffix.lower() in IMAGE_ENDINGS and not file.is_dir()]


def _folders_in(folder: Path) -> list[Path]:
    return [path for path in entries(folder) if path.is_dir()]


def _in_class_folders(folders: Sequence[Path]) -> ImageFiles:
    groups = {folder.name: image_files(folder) for folder in folders}
    files = [file for group in groups.values() for file in group]
    return ImageFiles(files, [name for name, group in groups.items() for _ in group])


def _listed(path: Path) -> ImageFiles:
    """Read a CSV file; its image paths are relative to the file."""
    files: list[Path] = []
    labels: list[str] = []
    for image, label in read_columns(path, "image", "label"):
        if not image.strip() or not label.strip():
            what = "label" if image.strip() else "name"
            raise FirststepError(f"{path}: image {len(files) + 1} has no {what}")
        files.append(path.parent / image.strip())
        labels.append(label.strip())
        require_regular(files[-1])
    if not files:
        raise FirststepError(f"{path} names no images; after the line `image,label`, add one line per image")
    return ImageFiles(files, labels)
