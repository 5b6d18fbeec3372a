"""An episode is a pure function of its number and the settings, and never mixes support and query."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firststep.data import Dataset, Episode, Episodes, Preprocessing, Split
from firststep.errors import FirststepError

# Digest of episode 3 of the default glyphs: if it changes, published test tasks change.
TASK = {"ways": 5, "shots": 5, "queries": 16, "seed": 7}
KNOWN = "e10d61269f37056d"


def digest(episode: Episode) -> str:
    return hashlib.sha256(b"".join(part.tobytes() for part in episode)).hexdigest()[:16]


def made_up(counts: list[int]) -> Split:
    """Return a split in which the value of an image tells its row."""
    images = np.arange(sum(counts), dtype=np.uint8)[:, None, None, None] * np.ones((1, 4, 4, 1), np.uint8)
    recipe = Preprocessing(image_size=4, channels=1, ink=True)
    return Split("folder", "train", [f"class {i}" for i in range(len(counts))], counts, images, recipe)


@given(data=st.data())
def test_shapes_labels_and_separation(data: st.DataObject) -> None:
    ways = data.draw(st.integers(2, 6), "ways")
    shots = data.draw(st.integers(1, 5), "shots")
    queries = data.draw(st.integers(1, 5), "queries")
    counts = data.draw(st.lists(st.integers(shots + queries, 14), min_size=ways, max_size=10), "counts")
    split = made_up(counts)
    episodes = Episodes(split, ways=ways, shots=shots, queries=queries, seed=data.draw(st.integers(0, 99)))
    index = data.draw(st.integers(0, 10**9), "index")
    episode = episodes[index]
    assert episode.support_x.shape == (ways * shots, 1, 4, 4)
    assert episode.query_x.shape == (ways * queries, 1, 4, 4)
    assert episode.support_x.dtype == episode.query_x.dtype == np.float32
    assert episode.support_y.dtype == episode.query_y.dtype == np.int64
    assert episode.support_y.tolist() == [k for k in range(ways) for _ in range(shots)]
    assert episode.query_y.tolist() == [k for k in range(ways) for _ in range(queries)]
    # The value of an image is its row.
    support = np.rint(episode.support_x[:, 0, 0, 0] * 255).astype(int).reshape(ways, shots)
    query = np.rint(episode.query_x[:, 0, 0, 0] * 255).astype(int).reshape(ways, queries)
    rows = [*support.ravel(), *query.ravel()]
    assert len(set(rows)) == len(rows)
    class_of = np.repeat(np.arange(len(counts)), counts)
    owners = [set(class_of[support[k]]) | set(class_of[query[k]]) for k in range(ways)]
    assert all(len(owner) == 1 for owner in owners)
    assert len(set.union(*owners)) == ways


def test_every_class_and_image_has_its_turn() -> None:
    episodes = Episodes(made_up([8] * 12), ways=3, shots=1, queries=2)
    episode_rows = [episodes.rows(i) for i in range(600)]
    classes = np.bincount([c for rows in episode_rows for c in rows.classes], minlength=12)
    support = np.bincount(np.concatenate([rows.support.ravel() for rows in episode_rows]), minlength=96)
    # 150 are expected per class and 18.75 per image; six standard deviations either way.
    assert abs(classes - 150).max() < 70
    assert abs(support - 18.75).max() < 26


def test_same_in_any_order_and_without_global_state(glyphs: Dataset) -> None:
    split = glyphs.split("test")
    np.random.seed(1)  # noqa: NPY002
    random.seed(1)
    before = (np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002
    forward = [digest(Episodes(split, **TASK)[i]) for i in range(5)]
    np.random.seed(2)  # noqa: NPY002
    episodes = Episodes(glyphs.split("test"), **TASK)
    backward = [digest(episodes[i]) for i in reversed(range(5))][::-1]
    assert forward == backward
    assert len(set(forward)) == 5
    np.random.seed(1)  # noqa: NPY002
    episodes[9]
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before  # noqa: NPY002


def test_same_in_another_process_and_for_ever(glyphs: Dataset, glyph_cache: Path) -> None:
    here = digest(Episodes(glyphs.split("test"), **TASK)[3])
    program = (
        "import hashlib, sys; from firststep.data import Episodes, open_dataset\n"
        f"split = open_dataset('glyphs', cache={str(glyph_cache)!r}).split('test')\n"
        f"episode = Episodes(split, **{TASK!r})[3]\n"
        "print(hashlib.sha256(b''.join(p.tobytes() for p in episode)).hexdigest()[:16])"
    )
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert there.stdout.strip() == here == KNOWN


@pytest.mark.parametrize("change", [{"ways": 4}, {"shots": 4}, {"queries": 15}, {"seed": 8}])
def test_every_setting_gives_other_tasks(glyphs: Dataset, change: dict[str, int]) -> None:
    split = glyphs.split("test")
    assert (
        Episodes(split, **TASK).rows(0).classes[:4]
        != Episodes(split, **{**TASK, **change}).rows(0).classes[:4]
    )
    assert Episodes(split, **TASK).rows(0).classes != Episodes(split, **TASK).rows(1).classes


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"shots": 5, "queries": 16}, r"class 'class 1' has 20 images, but 5 shots \+ 16 queries need 21"),
        ({"ways": 4, "shots": 1, "queries": 1}, "folder train has 3 classes, too few for 4-way"),
        ({"ways": 1}, "ways must be at least 2"),
        ({"shots": 0}, "shots must be at least 1"),
        ({"queries": 0}, "queries must be at least 1"),
    ],
)
def test_what_cannot_be_drawn_is_said_before_the_first_episode(settings: dict[str, int], says: str) -> None:
    with pytest.raises(FirststepError, match=says):
        Episodes(made_up([40, 20, 30]), **{"ways": 3, **settings})


def test_negative_episode() -> None:
    with pytest.raises(IndexError, match="from 0"):
        Episodes(made_up([4, 4]), ways=2, shots=1, queries=1)[-1]


def test_changing_an_episode_leaves_the_next_reading_alone() -> None:
    episodes = Episodes(made_up([4, 4]), ways=2, shots=1, queries=1)
    first = episodes[0]
    expected = digest(first)
    for part in first:
        part[...] = 1
    assert digest(episodes[0]) == expected
