"""Small made-up copies of the datasets in their true formats, written by the tools that make the real ones.

Every image has one colour that tells its class and number, so a test sees whether the right
image came out at the right place with its channels in order.
"""

from __future__ import annotations

import csv
import hashlib
import io
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from firststep.data import OfficialSplits, get_dataset_info
from pickles import newest_pickle, python2_pickle, python3_pickle

Expected = dict[str, dict[str, list[tuple[int, int, int]]]]
"""{split: {class: colours}}"""


def colour(name: str, index: int) -> tuple[int, int, int]:
    r, g, b = hashlib.sha256(f"{name} {index}".encode(errors="surrogateescape")).digest()[:3]
    return r, g, b


def array(name: str, index: int, size: int) -> np.ndarray:
    return np.full((size, size, 3), colour(name, index), dtype=np.uint8)


def encoded(name: str, index: int, size: int, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.fromarray(array(name, index, size)).save(file, kind, **({"quality": 95} if kind == "JPEG" else {}))
    return file.getvalue()


def official(dataset: str) -> OfficialSplits:
    splits = get_dataset_info(dataset).official
    assert splits is not None
    return splits()


def some_classes(dataset: str, count: int = 6) -> dict[str, list[str]]:
    """Return the first few official classes of each split, in the order of their names."""
    return {split: sorted(names)[:count] for split, names in official(dataset).classes.items()}


def expected(classes: dict[str, list[str]], images: int) -> Expected:
    return {
        split: {n: [colour(n, i) for i in range(images)] for n in sorted(names)}
        for split, names in classes.items()
    }


def numbered(classes: dict[str, list[str]], images: int) -> Expected:
    """Return the same where the files know the classes by numbers only."""
    return {
        split: {f"{split} label {k:03d}": [colour(n, i) for i in range(images)] for k, n in enumerate(names)}
        for split, names in classes.items()
    }


def write_folder(
    folder: Path, names: list[str], images: int, ending: str = "png", first: int = 0, size: int = 12
) -> None:
    kind = "JPEG" if ending.lower() in ("jpg", "jpeg") else "PNG"
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(first, first + images):
            (folder / name / f"{name}_{i:04d}.{ending}").write_bytes(encoded(name, i, size, kind))


Write = Callable[[Path, object], None]

# --- the writers: each leaves a copy in a folder and returns what should be found ------------------


def omniglot(root: Path) -> Expected:
    """Write images of 105 px and one bit; ink is 0."""
    classes = some_classes("omniglot")
    for split, names in classes.items():
        for name in names:
            half = "images_background" if split != "test" else "images_evaluation"
            folder = root / half / name
            folder.mkdir(parents=True)
            for i in range(3):
                Image.fromarray(np.full((105, 105), i != 1)).save(folder / f"{i:04d}_{i:02d}.png")
    # All paper is 0; all ink has a dark border and so is taken as it is: 0 too.
    return {split: {n: [(0, 0, 0)] * 3 for n in sorted(names)} for split, names in classes.items()}


def omniglot_zips(root: Path) -> Expected:
    content = omniglot(root / "loose")
    for half in ("images_background", "images_evaluation"):
        with zipfile.ZipFile(root / f"{half}.zip", "w") as archive:
            for file in sorted((root / "loose" / half).rglob("*.png")):
                archive.write(file, file.relative_to(root / "loose"))
    shutil.rmtree(root / "loose")
    return content


def _cifar_rows(names: list[str], first: int, images: int) -> tuple[np.ndarray, list[int]]:
    rows = [array(n, i, 32).transpose(2, 0, 1).ravel() for i in range(first, first + images) for n in names]
    return np.stack(rows), [k for _ in range(images) for k in range(len(names))]


def cifar_original(root: Path, dataset: str) -> Expected:
    """Write train, test and meta, as Krizhevsky's Python 2 did."""
    facts = official(dataset)
    names = sorted(name for split in facts.classes.values() for name in split)
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    python2_pickle(folder / "meta", {b"fine_label_names": [n.encode() for n in names]})
    for half, first, images in (("train", 0, 2), ("test", 2, 1)):
        data, labels = _cifar_rows(names, first, images)
        content = {b"data": data, b"fine_labels": labels, b"batch_label": b"half", b"filenames": []}
        python2_pickle(folder / half, content)
    return expected(facts.classes, 3)


def cifar_archive(root: Path, dataset: str) -> Expected:
    content = cifar_original(root / "loose", dataset)
    with tarfile.open(root / "cifar-100-python.tar.gz", "w:gz") as archive:
        archive.add(root / "loose" / "cifar-100-python", "cifar-100-python")
    shutil.rmtree(root / "loose")
    return content


def cifar_data_folder(root: Path, dataset: str) -> Expected:
    classes = some_classes(dataset)
    for split, names in classes.items():
        write_folder(root / "cifar100" / "data", names, 3, size=32)
        (root / "cifar100" / "splits" / "bertinetto").mkdir(parents=True, exist_ok=True)
        (root / "cifar100" / "splits" / "bertinetto" / f"{split}.txt").write_text("\n".join(names) + "\n")
    return expected(classes, 3)


def cifar_train_and_test(root: Path, dataset: str) -> Expected:
    classes = some_classes(dataset)
    for names in classes.values():
        write_folder(root / "train", names, 2, size=32)
        write_folder(root / "test", names, 1, first=2, size=32)
    # Within a class the train folder's images come first.
    return expected(classes, 3)


def _labelled(names: list[str], images: int, size: int) -> dict[str, object]:
    data = np.stack([array(n, i, size) for i in range(images) for n in names])
    return {"data": data, "labels": [k for _ in range(images) for k in range(len(names))]}


def cifar_pickles(root: Path, dataset: str) -> Expected:
    classes = some_classes(dataset)
    prefix = {"cifar-fs": "CIFAR_FS", "fc100": "FC100"}[dataset]
    for split, names in classes.items():
        content = {key.encode(): value for key, value in _labelled(names, 3, 32).items()}
        python3_pickle(root / f"{prefix}_{split}.pickle", content)
    return numbered(classes, 3)


def mini_cache(root: Path, val: str = "val", write: Write = python2_pickle) -> Expected:
    classes = some_classes("mini-imagenet")
    for split, names in classes.items():
        data = np.stack([array(n, i, 84) for n in names for i in range(3)])
        rows = {n.encode(): list(range(3 * k, 3 * k + 3)) for k, n in enumerate(names)}
        file = root / f"mini-imagenet-cache-{val if split == 'val' else split}.pkl"
        write(file, {b"image_data": data, b"class_dict": rows})
    return expected(classes, 3)


def mini_category_split(root: Path) -> Expected:
    classes = some_classes("mini-imagenet")
    phases = {"train": "train_phase_train", "val": "val", "test": "test"}
    for split, names in classes.items():
        content = _labelled(names, 3, 84) | {"catname2label": {n: k for k, n in enumerate(names)}}
        python2_pickle(root / f"miniImageNet_category_split_{phases[split]}.pickle", content)
    return expected(classes, 3)


def mini_folders(root: Path) -> Expected:
    classes = some_classes("mini-imagenet")
    for split, names in classes.items():
        write_folder(root / split, names, 3, "jpg", size=90)
    return expected(classes, 3)


def mini_csv(root: Path) -> Expected:
    classes = some_classes("mini-imagenet")
    (root / "images").mkdir(parents=True)
    for split, names in classes.items():
        with open(root / f"{split}.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["filename", "label"])
            for n in names:
                for i in range(3):
                    (root / "images" / f"{n}{i:08d}.jpg").write_bytes(encoded(n, i, 90, "JPEG"))
                    rows.writerow([f"{n}{i:08d}.jpg", n])
    return expected(classes, 3)


def _tiered_labels(names: list[str], images: int, strings: list[str] | None) -> dict[object, object]:
    labels = np.repeat(np.arange(len(names)), images)
    content: dict[object, object] = {b"label_specific": labels, b"label_general": np.zeros_like(labels)}
    if strings is not None:
        content[b"label_specific_str"] = strings
    return content


def tiered_png(root: Path) -> Expected:
    """Write a Python 2 list of what OpenCV's imencode returns: uint8 arrays [n, 1]."""
    classes = some_classes("tiered-imagenet")
    for split, names in classes.items():
        items = [np.frombuffer(encoded(n, i, 84), np.uint8)[:, None] for n in names for i in range(3)]
        python2_pickle(root / f"{split}_images_png.pkl", items)
        python2_pickle(root / f"{split}_labels.pkl", _tiered_labels(names, 3, None))
    return numbered(classes, 3)


def tiered_png_bytes(root: Path) -> Expected:
    """Write a list of PNG bytes with text keys, as re-pickled by Python 3."""
    classes = some_classes("tiered-imagenet")
    for split, names in classes.items():
        newest_pickle(root / f"{split}_images_png.pkl", [encoded(n, i, 84) for n in names for i in range(3)])
        labels = {k.decode(): v for k, v in _tiered_labels(names, 3, names).items()}  # type: ignore[attr-defined]
        newest_pickle(root / f"{split}_labels.pkl", labels)
    return expected(classes, 3)


def tiered_npz(root: Path) -> Expected:
    """Write BGR arrays, as OpenCV decodes them."""
    classes = some_classes("tiered-imagenet")
    for split, names in classes.items():
        images = np.stack([array(n, i, 84) for n in names for i in range(3)])[..., ::-1]
        np.savez(root / f"{split}_images.npz", images=images)
        python2_pickle(root / f"{split}_labels.pkl", _tiered_labels(names, 3, names))
    return expected(classes, 3)


def tiered_imagenet_folder(root: Path) -> Expected:
    classes = some_classes("tiered-imagenet")
    for names in classes.values():
        write_folder(root, names, 3, "JPEG", size=100)
    write_folder(root, ["n00000001"], 1, "JPEG")  # a class of ImageNet that is not in tiered
    return expected(classes, 3)


BIRDS = {
    "train": ["001.Black_footed_Albatross", "003.Sooty_Albatross", "005.Crested_Auklet"],
    "val": ["002.Laysan_Albatross", "006.Least_Auklet"],
    "test": ["004.Groove_billed_Ani", "008.Rhinoceros_Auklet"],
}


def cub(root: Path) -> Expected:
    for names in BIRDS.values():
        write_folder(root / "CUB_200_2011" / "images", names, 3, "jpg", size=90)
    (root / "CUB_200_2011" / "README").write_text("birds")
    return expected(BIRDS, 3)


def cub_archive(root: Path) -> Expected:
    content = cub(root / "loose")
    with tarfile.open(root / "CUB_200_2011.tgz", "w:gz") as archive:
        archive.add(root / "loose" / "CUB_200_2011", "CUB_200_2011")
    shutil.rmtree(root / "loose")
    return content


def cub_train_and_test(root: Path) -> Expected:
    for names in BIRDS.values():
        write_folder(root / "train", names, 2, "jpg", size=90)
        write_folder(root / "test", names, 1, "jpg", first=2, size=90)
    return expected(BIRDS, 3)


ANIMALS = {"train": ["ant", "bee", "cat"], "val": ["dog", "eel"], "test": ["fox", "gnu"]}


def folder_with_splits(root: Path) -> Expected:
    for split, names in ANIMALS.items():
        write_folder(root / split, names, 3)
    return expected(ANIMALS, 3)


@dataclass(frozen=True)
class Copy:
    """One row of the table of layouts."""

    dataset: str
    write: Callable[[Path], Expected]
    says: str
    """part of how the layout is described to the user"""
    tolerance: int = 0
    """JPEG changes a colour a little"""

    def __str__(self) -> str:
        return f"{self.dataset}: {self.says}"


COPIES = (
    Copy("omniglot", omniglot, "images_background/"),
    Copy("omniglot", omniglot_zips, "images_background.zip"),
    *(
        copy
        for name, prefix in (("cifar-fs", "CIFAR_FS"), ("fc100", "FC100"))
        for copy in (
            Copy(name, lambda root, name=name: cifar_original(root, name), "CIFAR-100's own"),
            Copy(name, lambda root, name=name: cifar_archive(root, name), "cifar-100-python.tar.gz"),
            Copy(name, lambda root, name=name: cifar_data_folder(root, name), "data/"),
            Copy(name, lambda root, name=name: cifar_train_and_test(root, name), "train/, test/"),
            Copy(name, lambda root, name=name: cifar_pickles(root, name), f"{prefix}_*.pickle"),
        )
    ),
    Copy("mini-imagenet", mini_cache, "mini-imagenet-cache-*.pkl"),
    Copy("mini-imagenet", lambda root: mini_cache(root, "validation", python3_pickle), "mini-imagenet-cache"),
    Copy("mini-imagenet", lambda root: mini_cache(root, "val", newest_pickle), "mini-imagenet-cache-*.pkl,"),
    Copy("mini-imagenet", mini_category_split, "miniImageNet_category_split_*.pickle"),
    Copy("mini-imagenet", mini_folders, "train/, val/ and test/", tolerance=6),
    Copy("mini-imagenet", mini_csv, "train.csv", tolerance=6),
    Copy("tiered-imagenet", tiered_png, "*_images_png.pkl"),
    Copy("tiered-imagenet", tiered_png_bytes, "*_images_png.pkl and"),
    Copy("tiered-imagenet", tiered_npz, "*_images.npz"),
    Copy("tiered-imagenet", tiered_imagenet_folder, "ImageNet class folders", tolerance=6),
    Copy("cub", cub, "images/ of CUB_200_2011", tolerance=6),
    Copy("cub", cub_archive, "CUB_200_2011.tgz", tolerance=6),
    Copy("cub", cub_train_and_test, "train/ and test/", tolerance=6),
    Copy("folder", folder_with_splits, "class folders in train, val, test"),
)
