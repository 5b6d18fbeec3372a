"""The paper's figures from full, partial, long and empty frames, and the files they are saved to."""

from __future__ import annotations

import hashlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from figure_frames import (
    EMPTY,
    FULL,
    SCALE,
    WAYS_AND_SHOTS,
    accuracies,
    axes_of,
    draw,
    footer,
    full,
    histories,
    legend,
    line,
    numbers,
    values,
)
from firststep.paper import FIGURES
from firststep.paper.figures.lines import WINDOW
from firststep.plotting import save_figure


@pytest.mark.parametrize("name", FIGURES)
def test_full_frames_give_a_complete_figure(name: str) -> None:
    figure = full(name)
    assert footer(figure).startswith(f"Scale: {SCALE}. A note.")
    assert "Missing" not in footer(figure)
    assert any("conditioned" in text or "κ of" in text or text in ("cls", "MAML") for text in legend(figure))
    for axes in figure.axes:
        if not axes.get_visible() or not axes.axison:
            continue
        assert axes.has_data()
        # Inner panels of a grid leave the label of a shared axis to the outer ones.
        for label in (axes.get_xlabel(), axes.get_ylabel()):
            assert not label or any(
                unit in label for unit in ("(%)", "steps", "step 1", "updates", "number", "parameter")
            )
    labels = " ".join(axes.get_ylabel() for axes in figure.axes)
    assert "accuracy (%)" in labels or "steps (%)" in labels or name == "subsets"
    # Nothing hangs over the edge of the page.
    inches = figure.get_tightbbox()
    assert inches.x0 >= -0.02
    assert inches.y0 >= -0.02
    assert inches.x1 <= figure.get_figwidth() + 0.02
    assert inches.y1 <= figure.get_figheight() + 0.02


@pytest.mark.parametrize("name", FIGURES)
def test_empty_frames_say_so(name: str) -> None:
    figure = draw(name, (EMPTY, EMPTY))
    said = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert "nothing to show yet" in said
    assert SCALE in footer(figure)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("kept", ["one method", "gaps", "first steps, bare columns"])
def test_partial_frames_are_drawn(name: str, kept: str) -> None:
    partial = []
    for frame in FULL[name]:
        frame = frame.reset_index(drop=True)
        if kept == "one method" and len(frame):
            frame = frame[frame["method"] == "conditioned"]
        if kept == "gaps" and len(frame):
            column = "accuracy" if "accuracy" in frame else "value"
            frame = frame.assign(**{column: frame[column].where(frame.index % 3 > 0)})
        if kept == "first steps, bare columns":
            frame = frame[frame["step"] <= 2] if "step" in frame else frame
            frame = frame.drop(columns=["ci95", "condition_number", "filters", "loss"], errors="ignore")
        partial.append(frame)
    figure = draw(name, (partial[0], partial[1]))
    assert sum(np.isfinite(numbers(each)).any() for axes in figure.axes for each in axes.lines) > 1


def test_long_logs_keep_their_numbers_under_a_running_median() -> None:
    logs = histories(updates=300)
    figure = draw("figure2", (EMPTY, logs))
    axes = axes_of(figure, "(b)")
    raw = values(logs, method="maml", split="validation", quantity="accuracy", index=1)
    assert raw in [numbers(each) for each in axes.lines]
    middle = line(axes, "MAML (run here)")[150]
    assert middle == np.median(raw[150 - WINDOW // 2 : 150 + WINDOW // 2 + 1])
    assert f"median of {WINDOW}" in axes.get_xlabel()


def test_settings_get_their_own_rows_and_crowds_of_paper_numbers_their_own_panels() -> None:
    tests = pd.concat(
        [accuracies(), accuracies(dataset="omniglot")]
        + [accuracies("paper", name, ("conv6",)) for name in ("cub", "fc100")]
    )
    figure = draw("figure2", (tests, histories()))
    titles = [" ".join(axes.get_title().split()) for axes in figure.axes[::3]]
    assert titles == [
        f"(a) {where} 5-way 5-shot"
        for where in ("glyphs, Conv4", "omniglot, Conv4", "cub, Conv6", "fc100, Conv6")
    ]
    assert "training log of MAML on omniglot" in footer(figure)
    assert "cub, Conv6, 5-way 5-shot (not tested here)" in footer(figure)


def test_only_the_papers_numbers() -> None:
    figure = draw("figure4", (accuracies("paper", "mini", tasks=WAYS_AND_SHOTS), EMPTY))
    assert legend(figure) == ["MAML (paper: mini, Conv4)", "conditioned (paper: mini, Conv4)"]
    assert "Missing: all test results of runs here." in footer(figure)


def test_files_are_whole_repeatable_and_undated(tmp_path: Path) -> None:
    digests = set()
    figure, again = full("figure2"), draw("figure2", FULL["figure2"])
    for attempt, drawn in (("first", figure), ("first", figure), ("v1.0", again)):
        files = tmp_path / f"{attempt}.png", tmp_path / f"{attempt}.svg"
        for file in files:
            save_figure(drawn, file, "how it was made")
        digests.add(tuple(hashlib.sha256(file.read_bytes()).hexdigest() for file in files))
    assert len(digests) == 1
    assert len(list(tmp_path.iterdir())) == 4  # nothing temporary is left
    with Image.open(files[0]) as image:
        image.load()
        assert image.width == 1440
        assert image.info["dpi"] == pytest.approx((200, 200), abs=0.1)
        assert image.info["Description"] == "how it was made"
    assert ElementTree.parse(files[1]).getroot().tag.endswith("svg")
    assert "dc:date" not in files[1].read_text()
    assert "how it was made" in files[1].read_text()
