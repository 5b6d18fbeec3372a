"""Contact sheets show the images of an episode in their places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import dataset_copies as copies
from firststep.data import Episodes, open_dataset, write_class_sheet, write_episode_sheet
from firststep.errors import FirststepError


def test_episode_sheet(tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path)
    split = open_dataset("folder", tmp_path, image_size=48).split("train")
    episodes = Episodes(split, ways=3, shots=1, queries=2)
    write_episode_sheet(episodes, 4, tmp_path / "deep" / "er" / "sheet.png")
    sheet = np.array(Image.open(tmp_path / "deep" / "er" / "sheet.png"))
    rows = episodes.rows(4)
    for row in range(3):
        y = 2 + 50 * row + 24
        np.testing.assert_array_equal(sheet[y, 2 + 24], split.images[rows.support[row, 0]][0, 0])
        for k in range(2):
            x = 2 + 50 + 10 + 50 * k + 24
            np.testing.assert_array_equal(sheet[y, x], split.images[rows.query[row, k]][0, 0])


def test_class_sheet(tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path)
    split = open_dataset("folder", tmp_path, image_size=48).split("train")
    write_class_sheet(split, tmp_path / "sheet.png")
    sheet = np.array(Image.open(tmp_path / "sheet.png"))
    assert sheet.shape == (3 * 50 + 2, 3 * 50 + 2, 3)
    np.testing.assert_array_equal(sheet[26, 76], split.images[1][0, 0])


def test_sheet_that_cannot_be_written(tmp_path: Path) -> None:
    copies.folder_with_splits(tmp_path)
    split = open_dataset("folder", tmp_path).split("train")
    with pytest.raises(FirststepError, match=r"is a PNG: name it .*sheet\.png"):
        write_class_sheet(split, tmp_path / "sheet.jpg")
    (tmp_path / "file").write_text("")
    with pytest.raises(FirststepError, match=r"cannot write .*sheet\.png"):
        write_class_sheet(split, tmp_path / "file" / "sheet.png")
