"""Each of the paper's figures draws the numbers of its frame."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from figure_frames import (
    EMPTY,
    FULL,
    WAYS_AND_SHOTS,
    accuracies,
    axes_of,
    draw,
    footer,
    full,
    legend,
    line,
    numbers,
    values,
)
from firststep.paper.figures.figure1 import valley
from firststep.paper.figures.labels import place_labels


def test_first_steps_by_network_hold_the_frame_and_mark_gaps() -> None:
    tests = FULL["figure1"][0]
    absent = (tests["source"] == "ours") & (tests["backbone"] == "conv6") & (tests["method"] == "maml")
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


def test_descent_takes_ten_steps_of_one_half_at_a_high_and_a_near_one_condition_number() -> None:
    figure = draw("figure1", (EMPTY, EMPTY))
    for kappa, left, (flat, steep) in (("36", "57", (0.1, 3.6)), ("1.2", "0.094", (1.0, 1.2))):
        axes = axes_of(figure, f"κ = {kappa}: {left} % of the way is left after 10 steps")
        path = np.column_stack([axes.lines[0].get_xdata(), axes.lines[0].get_ydata()])
        assert len(path) == 11
        # In the valley's own directions each step multiplies by 1 - η λ, η = 0.5.
        _, directions = np.linalg.eigh(valley((flat, steep)))
        own = path @ directions
        np.testing.assert_allclose(own[1:, 0], own[:-1, 0] * (1 - 0.5 * flat), atol=1e-12)
        np.testing.assert_allclose(own[1:, 1], own[:-1, 1] * (1 - 0.5 * steep), atol=1e-12)
    assert "10 steps of gradient descent at learning rate 0.5" in footer(figure)


def test_curves_over_steps_and_training_hold_the_frame() -> None:
    tests, logs = FULL["figure2"]
    figure = full("figure2")
    over_steps = axes_of(figure, "(a) glyphs, Conv4 5-way 5-shot")
    for method, name in (("maml", "MAML"), ("conditioned", "conditioned")):
        assert line(over_steps, f"{name} (run here)") == values(tests, source="ours", method=method)
        assert line(over_steps, f"{name} (paper: cub, Conv6)") == values(tests, source="paper", method=method)
        for title, split, quantity, index in (
            ("(b)", "validation", "accuracy", 1),
            ("(c)", "train", "condition_number", 0),
        ):
            shown = values(logs, method=method, split=split, quantity=quantity, index=index)
            assert line(axes_of(figure, title), f"{name} (run here)") == shown
    assert axes_of(figure, "(c)").get_yscale() == "log"
    band = over_steps.collections[0].get_datalim(over_steps.transData)
    own = values(tests, source="ours", method="maml")
    assert (band.y0, band.y1) == pytest.approx((min(own) - 0.5, max(own) + 0.5))


def test_a_wide_interval_over_two_seeds_leaves_the_axes_readable() -> None:
    tests, logs = FULL["figure2"]
    bands = {"low": 1e-60, "high": 1e70}
    figure = draw("figure2", (tests.assign(ci95=200.0), logs.assign(**bands)))
    highest = max(values(logs, split="train", quantity="condition_number", index=0))
    for title, low, high in (("(a) glyphs", 0, 100), ("(b)", 0, 100), ("(c)", 1, 10 * highest)):
        axes = axes_of(figure, title)
        drawn = axes.collections[0].get_datalim(axes.transData)
        assert (drawn.y0, drawn.y1) == pytest.approx((low, high)), title
    assert axes.get_ylim()[1] < 100 * highest


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
    unknown = tests["method"].eq("meta-sgd") & tests["source"].eq("ours") & tests["backbone"].eq("conv6")
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


def test_supplement_has_every_step_and_stage() -> None:
    logs = FULL["supplement"][1]
    figure = full("supplement")
    for step in range(6):
        where = {"method": "maml", "split": "validation", "quantity": "accuracy", "index": step}
        axes = axes_of(figure, f"after {step} step{'s' * (step != 1)}")
        assert line(axes, "MAML (run here)") == values(logs, **where)
    for split in ("train", "validation"):
        for stage in range(5):
            where = {"subset": "cls", "split": split, "quantity": "condition_number", "index": stage}
            axes = axes_of(figure, f"{split}, stage {stage}")
            assert line(axes, "conditioned (run here)") == values(logs, **where)
            assert axes.get_yscale() == "log"


def test_subsets_have_both_condition_numbers_in_a_panel_each() -> None:
    logs = FULL["subsets"][1]
    figure = full("subsets")
    for subset, title in (("", "none (κ of cls)"), ("cls", "cls"), ("emb", "emb"), ("all", "all")):
        (axes,) = [axes for axes in figure.axes if axes.get_title() == title]
        assert axes.get_yscale() == "log"
        where = {"subset": subset, "split": "validation", "index": 0}
        shown = values(logs, quantity="condition_number", **where)
        assert line(axes, "κ of the constrained parameters") == shown
        assert line(axes, "κ of all parameters") == values(logs, quantity="condition_number_all", **where)


def test_rivals_have_a_column_for_each_variant_and_one_mark_a_method() -> None:
    tests = FULL["rivals"][0]
    gone = (tests["method"] == "gap, shared head") & (tests["step"] == 5)
    figure = draw("rivals", (tests[~gone], EMPTY))
    assert legend(figure) == ["MAML", "gap"]
    after_one, after_five = figure.axes[:3], figure.axes[3:]
    for row, step in ((after_one, 1), (after_five, 5)):
        assert f"{step} step" in row[0].get_ylabel()
        for axes, methods in zip(
            row,
            (("maml", "gap"), ("conditioned", "gap + conditioning"), ("gap, shared head",)),
            strict=True,
        ):
            there = tests[~gone & (tests["step"] == step) & tests["method"].isin(methods)]
            points = {(float(each.get_xdata()[0]), numbers(each)[0]) for each in axes.lines}  # type: ignore[index]
            assert points == set(zip(there["parameters"], there["accuracy"], strict=True))
    assert "Missing: gap, shared head none after 5 steps" in footer(figure)
