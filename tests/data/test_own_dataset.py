"""Datasets that a user adds from outside the package."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dataset_copies as copies
from firststep.data import (
    DATASETS,
    ArrayImages,
    DatasetInfo,
    DatasetMismatchError,
    Draws,
    Episodes,
    GeneratedImages,
    Layout,
    OfficialSplits,
    Source,
    open_dataset,
    register_dataset,
)
from firststep.errors import FirststepError

DOCS = Path(__file__).parents[2] / "docs" / "data.md"
SPECIES = {"train": ["amanita", "boletus", "russula"], "val": ["lactarius"], "test": ["morel", "truffle"]}


@pytest.fixture(autouse=True)
def _only_for_this_test() -> Iterator[None]:
    before = set(DATASETS)
    yield
    for name in set(DATASETS) - before:
        DATASETS.unregister(name)


def photographs(root: Path) -> Path:
    """Write what the example in the docs reads: <split>/<species>-<number>.jpg."""
    for split, names in SPECIES.items():
        (root / split).mkdir(parents=True)
        for name in names:
            for i in range(4):
                (root / split / f"{name}-{i}.jpg").write_bytes(copies.encoded(name, i, 90, "JPEG"))
    return root


def test_the_example_in_the_docs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)
    (example,) = [block for block in blocks if "register_dataset(" in block]
    (tmp_path / "mushrooms.py").write_text(example, encoding="utf-8")
    runpy.run_path(str(tmp_path / "mushrooms.py"))
    assert "mushrooms" in DATASETS

    dataset = open_dataset("mushrooms", photographs(tmp_path / "photographs"))
    assert {split: dataset.split(split).classes for split in dataset.splits} == SPECIES
    assert dataset.image_size == 84
    episodes = Episodes(dataset.split("train"), ways=3, shots=1, queries=3)
    assert episodes[0].support_x.shape == (3, 3, 84, 84)
    rows = episodes.rows(0)
    for label, number in enumerate(rows.classes):
        i = int(rows.support[label, 0]) - 4 * number  # four images per class
        colour = copies.colour(SPECIES["train"][number], i)
        shown = dataset.split("train").images[rows.support[label, 0]]
        assert np.abs(shown.astype(int) - colour).max() <= 6

    DATASETS.unregister("mushrooms")
    with pytest.raises(FirststepError, match="unknown dataset 'mushrooms'"):
        open_dataset("mushrooms", tmp_path / "photographs")


def array_dataset(**changes: object) -> DatasetInfo:
    """Return a dataset of 20 classes in one array file, without a split."""

    def parts(root: Path) -> list[Path]:
        return [path for path in [root / "all.npy"] if path.exists()]

    def read(root: Path) -> Source:
        array = np.load(root / "all.npy", mmap_mode="r")
        classes = {f"class {c:02d}": ArrayImages(array, [2 * c, 2 * c + 1], "all.npy") for c in range(20)}
        return Source("one array", {"all": classes})

    info = DatasetInfo(
        name="arrays",
        about="grey arrays",
        image_size=8,
        channels=1,
        layouts=(Layout("all.npy", parts, read),),
    )
    return replace(info, **changes)  # type: ignore[arg-type]


def write_array(root: Path) -> None:
    np.save(root / "all.npy", np.arange(40, dtype=np.uint8).repeat(64).reshape(40, 8, 8, 1))


def test_unsplit_source_is_split_by_class(tmp_path: Path) -> None:
    write_array(tmp_path)
    register_dataset(array_dataset(options=("seed", "rotations")))
    dataset = open_dataset("arrays", tmp_path, seed=1)
    assert [len(dataset.split(split).classes) for split in ("train", "val", "test")] == [13, 3, 4]
    assert dataset.record.notes == ["split by class with seed 1"]
    first = int(dataset.split("test").classes[0].removeprefix("class "))
    np.testing.assert_array_equal(dataset.split("test").images[0], np.full((8, 8, 1), 2 * first))
    assert len(open_dataset("arrays", tmp_path, rotations=True).split("test").classes) == 16


def test_published_classes_are_compared(tmp_path: Path) -> None:
    write_array(tmp_path)
    register_dataset(array_dataset(official=lambda: OfficialSplits({"train": ["class 77"]})))
    with pytest.raises(DatasetMismatchError, match="train: 1 class missing: class 77"):
        open_dataset("arrays", tmp_path)


def test_another_version_of_the_layout_makes_another_cache(tmp_path: Path) -> None:
    write_array(tmp_path)
    register_dataset(array_dataset())
    first = open_dataset("arrays", tmp_path)
    DATASETS.unregister("arrays")
    register_dataset(array_dataset(version=2))
    again = open_dataset("arrays", tmp_path)
    assert again.folder != first.folder
    assert again.fingerprint == first.fingerprint


class Noise:
    """Ten images of one class, drawn from a seed."""

    def __init__(self, seed: int, number: int) -> None:
        self.identity = ("noise", seed, number)

    def __len__(self) -> int:
        return 10

    def name(self, index: int) -> str:
        return f"noise {index}"

    def pixels(self, index: int, preprocessing: object) -> np.ndarray:
        return (256 * Draws(*self.identity, index).uniform(16)).astype(np.uint8).reshape(4, 4, 1)


def test_generated_images(tmp_path: Path) -> None:
    register_dataset(
        DatasetInfo(
            name="noise",
            about="noise",
            image_size=4,
            channels=1,
            options=("seed",),
            generated=GeneratedImages(
                source=lambda seed: Source("noise", {"train": {str(i): Noise(seed, i) for i in range(3)}}),
                identity=lambda seed: [f"noise {seed}"],
            ),
        )
    )
    first, other = (open_dataset("noise", seed=seed, cache=tmp_path) for seed in (0, 1))
    assert first.split("train").images.shape == (30, 4, 4, 1)
    assert first.fingerprint != other.fingerprint
    with pytest.raises(FirststepError, match="noise is generated, not read from files"):
        open_dataset("noise", tmp_path)


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="already a dataset called 'cub'"):
        register_dataset(replace(DATASETS["cub"]))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "my/data"}, "letters, digits"),
        ({"layouts": ()}, "needs either layouts or generated images"),
        ({"options": ("sead",)}, "unknown dataset option 'sead'; did you mean seed?"),
    ],
)
def test_mistakes_in_a_description(changes: dict[str, object], says: str) -> None:
    with pytest.raises(FirststepError, match=re.escape(says)):
        array_dataset(**changes)


def test_splits_that_nobody_would_find() -> None:
    with pytest.raises(FirststepError, match="splits must be among train, val, test, or all alone, not dev"):
        Source("mine", {"dev": {}})
