"""The paper's figures: the numbers of the frame are in the picture, gaps are named, files are repeatable."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from PIL import Image

from firststep.paper.figures import FIGURES, save
from firststep.paper.figures.descent import best_rate, descend, valley
from firststep.paper.figures.labels import place_labels
from firststep.paper.figures.lines import WINDOW

EMPTY = pd.DataFrame()
SCALE = "smoke: 4 updates, 4 filters"
METHODS = (("maml", ""), ("conditioned", "cls"))
SUBSETS = (*METHODS, ("conditioned", "emb"), ("conditioned", "all"))
WAYS_AND_SHOTS = ((5, 1), (5, 5), (10, 5))


def accuracies(
    source: str = "ours",
    dataset: str = "glyphs",
    backbones: tuple[str, ...] = ("conv4",),
    tasks: tuple[tuple[int, int], ...] = ((5, 5),),
    models: tuple[tuple[str, str], ...] = METHODS,
) -> pd.DataFrame:
    """Every number differs, so that one in the wrong place is seen."""
    rows = [
        {
            "source": source,
            "row": f"{method} {subset}".strip(),
            "dataset": dataset,
            "backbone": backbone,
            "filters": 16,
            "method": method,
            "subset": subset,
            "loss": "variance",
            "ways": ways,
            "shots": shots,
            "step": step,
            "rate_multiplier": 1.0,
            "parameters": 30_000 * (1 + place),
        }
        for place, backbone in enumerate(backbones)
        for ways, shots in tasks
        for method, subset in models
        for step in range(6)
    ]
    frame = pd.DataFrame(rows)
    offset = 7 if source == "paper" else 0
    return frame.assign(
        accuracy=20 + offset + 50 * np.arange(len(frame)) / len(frame), ci95=0.5, condition_number=10.0
    )


def histories(models: tuple[tuple[str, str], ...] = METHODS, updates: int = 4) -> pd.DataFrame:
    known = {"dataset": "glyphs", "backbone": "conv4", "loss": "variance", "ways": 5, "shots": 5}
    rows = [
        {
            **known,
            "row": f"{method} {subset}".strip(),
            "method": method,
            "subset": subset,
            "update": 25 * (update + 1),
            "split": split,
            "quantity": quantity,
            "index": index,
        }
        for method, subset in models
        for split in ("train", "validation")
        for quantity, indices in (("accuracy", 6), ("condition_number", 5), ("condition_number_all", 5))
        for index in range(indices)
        for update in range(updates)
    ]
    frame = pd.DataFrame(rows)
    return frame.assign(value=10.0 + np.arange(len(frame)) % 83)


FULL = {
    "figure1": (
        pd.concat(
            [
                accuracies(source, "cub", ("Conv4", "Conv6", "ResNet10", "resnet18"))
                for source in ("ours", "paper")
            ]
        ),
        EMPTY,
    ),
    "figure2": (pd.concat([accuracies(), accuracies("paper", "cub", ("Conv6",))]), histories()),
    "figure3": (
        pd.concat([accuracies(models=SUBSETS), accuracies("paper", "cub", ("Conv4",), models=SUBSETS[:3])]),
        histories(SUBSETS),
    ),
    "figure4": (
        pd.concat(
            [accuracies(tasks=WAYS_AND_SHOTS), accuracies("paper", "mini", ("Conv6",), WAYS_AND_SHOTS)]
        ),
        EMPTY,
    ),
    "figure5": (
        pd.concat(
            [
                accuracies(source, backbones=("Conv4", "Conv6"), models=(*METHODS, ("meta-sgd", "")))
                for source in ("ours", "paper")
            ]
        ),
        EMPTY,
    ),
    "supplement": (EMPTY, histories(SUBSETS)),
}


def draw(name: str, frames: tuple[pd.DataFrame, pd.DataFrame], note: str = "A note.") -> Figure:
    return FIGURES[name](*frames, SCALE, note)


@functools.cache
def full(name: str) -> Figure:
    """Drawn once, for all who only look at it."""
    return draw(name, FULL[name])


def footer(figure: Figure) -> str:
    return " ".join(figure.get_supxlabel().split())


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for each in figure.legends for text in each.get_texts()]


def axes_of(figure: Figure, title: str) -> Axes:
    """The panel whose title contains the words."""
    found = [axes for axes in figure.axes if title in " ".join(axes.get_title().split())]
    assert len(found) == 1, [axes.get_title() for axes in figure.axes]
    return found[0]


def numbers(line: Line2D) -> list[float]:
    return [float(value) for value in np.asarray(line.get_ydata(), dtype=float)]


def line(axes: Axes, label: str) -> list[float]:
    """The numbers of a labelled line, with or without error bars."""
    handles, labels = axes.get_legend_handles_labels()
    found = handles[labels.index(label)]
    return numbers(found if isinstance(found, Line2D) else found.lines[0])


def values(frame: pd.DataFrame, **where: object) -> list[float]:
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame["accuracy" if "accuracy" in frame else "value"].tolist()


@pytest.mark.parametrize("name", FIGURES)
def test_full_frames_give_a_complete_figure(name: str) -> None:
    figure = full(name)
    assert footer(figure).startswith(f"Scale: {SCALE}. A note.")
    assert "Missing" not in footer(figure)
    assert any("conditioned" in text or text == "cls" for text in legend(figure))
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
    assert "accuracy (%)" in labels or "steps (%)" in labels
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
    small = (EMPTY, histories()) if name == "supplement" else FULL[name]
    for frame in small:
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
    assert sum(np.isfinite(numbers(each)).any() for axes in figure.axes for each in axes.lines) > 2


def test_first_steps_by_network_hold_the_frame_and_mark_gaps() -> None:
    tests = FULL["figure1"][0]
    absent = (tests["source"] == "ours") & (tests["backbone"] == "Conv6") & (tests["method"] == "maml")
    figure = draw("figure1", (tests[~absent], EMPTY))
    axes = axes_of(figure, "cub, 5-way 5-shot")
    drawn = [numbers(each) for each in axes.lines]
    for (source, backbone, method), group in tests[~absent].groupby(["source", "backbone", "method"]):
        expected = [values(group, step=step)[0] for step in (1, 2)]
        assert expected in drawn, (source, backbone, method)
    assert {"MAML (run here)", "conditioned (paper)", "chance", "missing"} <= set(legend(figure))
    assert "Missing: MAML on cub, Conv6, 5-way 5-shot after step 1 and 2." in footer(figure)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [
        "Conv4",
        "Conv6",
        "ResNet\n10",
        "ResNet\n18",
    ]


def test_descent_is_computed_and_its_step_size_stated() -> None:
    for kappa in (2.0, 10.0):
        hessian = valley(kappa)
        assert np.linalg.cond(hessian) == pytest.approx(kappa)
        lengths = np.linalg.norm(descend(hessian), axis=1)
        np.testing.assert_allclose(lengths[1:] / lengths[:-1], (kappa - 1) / (kappa + 1))
    figure = draw("figure1", (EMPTY, EMPTY))
    axes = axes_of(figure, "κ = 10: 37 % of the way is left after 5 steps")
    path = np.column_stack([axes.lines[0].get_xdata(), axes.lines[0].get_ydata()])
    np.testing.assert_allclose(path, descend(valley(10)))
    assert f"{best_rate(valley(10)):.2g} at κ = 10" in footer(figure)


def test_curves_over_steps_and_training_hold_the_frame() -> None:
    tests, logs = FULL["figure2"]
    figure = full("figure2")
    over_steps = axes_of(figure, "(a) glyphs, Conv4 5-way 5-shot")
    for method, name in (("maml", "MAML"), ("conditioned", "conditioned")):
        assert line(over_steps, f"{name} (run here)") == values(tests, source="ours", method=method)
        assert line(over_steps, f"{name} (paper: cub, Conv6)") == values(tests, source="paper", method=method)
        for title, quantity, index in (("(b)", "accuracy", 1), ("(c)", "condition_number", 0)):
            shown = values(logs, method=method, split="validation", quantity=quantity, index=index)
            assert line(axes_of(figure, title), f"{name} (run here)") == shown
    assert axes_of(figure, "(c)").get_yscale() == "log"
    band = over_steps.collections[0].get_datalim(over_steps.transData)
    own = values(tests, source="ours", method="maml")
    assert (band.y0, band.y1) == pytest.approx((min(own) - 0.5, max(own) + 0.5))


def test_subsets_hold_the_frame_and_what_is_missing_is_named() -> None:
    tests, logs = FULL["figure3"]
    figure = draw("figure3", (tests[tests["subset"] != "emb"], logs[logs["subset"] != "cls"]))
    for source, title in (("ours", "run here: glyphs"), ("paper", "paper: cub")):
        shown = values(tests, source=source, subset="cls")
        assert line(axes_of(figure, title), "cls") == shown
    for title, quantity in (("constrained", "condition_number"), ("all", "condition_number_all")):
        axes = axes_of(figure, f"κ of {'the ' if title != 'all' else ''}{title} parameters")
        for subset, name in (("", "none"), ("emb", "emb"), ("all", "all")):
            where = {"subset": subset, "split": "validation", "quantity": quantity, "index": 0}
            assert line(axes, name) == values(logs, **where)
    assert legend(figure) == ["none", "cls", "all", "emb"]
    assert "Missing: emb on glyphs, Conv4, 5-way 5-shot; training log of cls" in footer(figure)


def test_ways_and_shots_have_a_panel_each_and_stop_at_five_steps() -> None:
    tests = FULL["figure4"][0]
    beyond = tests[tests["step"] == 5].assign(step=100, accuracy=1.0)
    tests = tests.assign(accuracy=tests["accuracy"].mask((tests["shots"] == 1) & (tests["step"] == 3)))
    figure = draw("figure4", (pd.concat([tests, beyond]), EMPTY))
    ours = tests[(tests["source"] == "ours") & (tests["step"] > 0)]
    for ways, shots in WAYS_AND_SHOTS:
        axes = axes_of(figure, f"{ways}-way {shots}-shot")
        assert [int(tick) for tick in axes.get_xticks()] == [s for s in range(1, 6) if (shots, s) != (1, 3)]
        shown = line(axes, "conditioned (run here: glyphs, Conv4)")
        np.testing.assert_equal(shown, values(ours, ways=ways, shots=shots, method="conditioned"))
    assert "conditioned (paper: mini, Conv6)" in legend(figure)
    assert "MAML on glyphs, Conv4, 5-way 1-shot after 3 steps" in footer(figure)


def test_bigger_rates_are_no_part_of_a_curve() -> None:
    tests = accuracies()
    bigger = tests[tests["step"] == 1].assign(rate_multiplier=3.0, accuracy=1.0)
    figure = draw("figure2", (pd.concat([bigger, tests]), EMPTY))
    assert line(axes_of(figure, "(a)"), "MAML (run here)") == values(tests, method="maml")


def test_parameters_against_accuracy() -> None:
    tests = FULL["figure5"][0]
    unknown = tests["method"].eq("meta-sgd") & tests["source"].eq("ours") & tests["backbone"].eq("Conv6")
    figure = draw("figure5", (tests.assign(parameters=tests["parameters"].mask(unknown)), EMPTY))
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    points = {(float(each.get_xdata()[0]), numbers(each)[0]) for each in axes.lines}  # type: ignore[index]
    last = tests[(tests["step"] == 5) & ~unknown]
    assert points == set(zip(last["parameters"], last["accuracy"], strict=True))
    assert "after 5 steps (%)" in axes.get_ylabel()
    assert len(axes.texts) == len(last)
    assert "Missing: parameters of meta-sgd, Conv6-16 (ours)" in footer(figure)


def test_labels_cover_nothing() -> None:
    figure = Figure(figsize=(5, 4))
    axes = figure.subplots()
    points = [(0.5 + 0.02 * i, 0.5 + 0.03 * (i % 3)) for i in range(12)]
    axes.plot(*zip(*points, strict=True), "o", markersize=4)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    place_labels(figure, axes, points, [0.0] * 12, [f"Conv4-{i}" for i in range(12)], 6)
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # without the lines to their points
    marks = axes.transData.transform(points)
    for index, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:index])
        assert not any(box.contains(x, y) for x, y in marks)
        assert axes.bbox.contains(box.x0, box.y0)
        assert axes.bbox.contains(box.x1, box.y1)


def test_supplement_has_every_step_stage_and_subset() -> None:
    logs = FULL["supplement"][1]
    figure = full("supplement")
    for step in range(6):
        where = {"method": "maml", "split": "validation", "quantity": "accuracy", "index": step}
        axes = axes_of(figure, f"after {step} step{'s' * (step != 1)}")
        assert line(axes, "MAML (run here)") == values(logs, **where)
        where |= {"method": "conditioned", "subset": "emb"}
        assert line(axes_of(figure, "emb"), f"step {step}") == values(logs, **where)
    for split in ("train", "validation"):
        for stage in range(5):
            where = {"subset": "cls", "split": split, "quantity": "condition_number", "index": stage}
            axes = axes_of(figure, f"{split}, stage {stage}")
            assert line(axes, "conditioned (run here)") == values(logs, **where)
            assert axes.get_yscale() == "log"


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
        + [accuracies("paper", name, ("Conv6",)) for name in ("cub", "fc100")]
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
        files = save(drawn, tmp_path / attempt, "how it was made")
        assert files == (tmp_path / f"{attempt}.png", tmp_path / f"{attempt}.svg")
        digests.add(tuple(hashlib.sha256(file.read_bytes()).hexdigest() for file in files))
    assert len(digests) == 1
    assert len(list(tmp_path.iterdir())) == 4  # nothing temporary is left
    with Image.open(files[0]) as picture:
        picture.load()
        assert picture.width == 1440
        assert picture.info["dpi"] == pytest.approx((200, 200), abs=0.1)
        assert picture.info["Description"] == "how it was made"
    assert ElementTree.parse(files[1]).getroot().tag.endswith("svg")
    assert "dc:date" not in files[1].read_text()
    assert "how it was made" in files[1].read_text()


def test_rivals_with_conditioning_look_like_them_with_a_rim() -> None:
    rivals = (("gap", "none"), ("gap + conditioning", "cls"), ("new rule", "none"), ("newer rule", "none"))
    (axes,) = draw("figure5", (accuracies(models=rivals), EMPTY)).axes
    handles, labels = axes.get_legend_handles_labels()
    looks = {
        label: (marks.get_color(), marks.get_marker(), marks.get_markeredgecolor())
        for label, marks in ((label, handle.lines[0]) for label, handle in zip(labels, handles, strict=True))
    }
    assert looks["gap (run here)"][:2] == looks["gap + conditioning (run here)"][:2]
    assert looks["gap + conditioning (run here)"][2] == "black"
    assert looks["new rule (run here)"][:2] != looks["newer rule (run here)"][:2]
