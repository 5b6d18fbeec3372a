"""One style: a method looks the same in `compare`, in `diagnose` and in the paper's figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from figure_frames import axes_of, full
from firststep.evaluation import METRICS, Evaluation, EvaluationSettings, Spectrum, spectrum_figure
from firststep.evaluation.figures import comparison_figure
from firststep.evaluation.measure import Measurement
from firststep.methods import METHODS
from firststep.plotting import STYLES, embed_figure, line_style, line_styles

Look = tuple[object, object, object]
"""Colour, marker and dashes."""


def look(line: Line2D) -> Look:
    return line.get_color(), line.get_marker(), line.get_linestyle()


def looks(axes: Axes) -> dict[str, Look]:
    handles, labels = axes.get_legend_handles_labels()
    lines = [handle if isinstance(handle, Line2D) else handle.lines[0] for handle in handles]
    return {label: look(line) for label, line in zip(labels, lines, strict=True)}


def evaluation(label: str, run: str) -> Evaluation:
    accuracy = np.array([[0.2, 0.4], [0.2, 0.6]])
    measurement = Measurement(
        steps=(0, 1), values={"accuracy": accuracy}, metrics={"accuracy": METRICS["accuracy"]}
    )
    return Evaluation(
        label=label,
        run=run,
        data="",
        data_fingerprint="",
        settings=EvaluationSettings(),
        measurement=measurement,
        provenance={},
    )


def compared(labels: Sequence[str]) -> dict[str, Look]:
    figure = comparison_figure(
        [evaluation(label, f"run{number}") for number, label in enumerate(labels)], [[]] * len(labels)
    )
    return looks(figure.axes[0])


def test_methods_look_the_same_in_compare_and_in_the_papers_figures() -> None:
    paper = looks(axes_of(full("figure2"), "(a)"))
    for order in (["maml", "maml + conditioning"], ["maml + conditioning", "gap", "maml"]):
        shown = compared(order)
        assert shown["maml"] == paper["MAML (run here)"]
        assert shown["maml + conditioning"] == paper["conditioned (run here)"]


def test_subsets_look_the_same_in_diagnose_and_in_the_papers_figures() -> None:
    spectra = [
        Spectrum(subset, np.ones((2, 3)), condition_number=1.0, loss=0.0, rank=3.0)
        for subset in ("all", "emb", "cls")
    ]
    (axes,) = spectrum_figure(spectra).axes
    shown = {label.split()[0]: drawn for label, drawn in looks(axes).items()}
    paper = looks(axes_of(full("figure3"), "run here"))
    assert shown == {subset: paper[subset] for subset in ("all", "emb", "cls")}


def test_every_name_has_a_style_of_its_own_also_one_that_plotting_does_not_know() -> None:
    unknown = [f"rule{number}" for number in range(20)]
    assert not set(unknown) & set(STYLES)
    names = [*METHODS, "maml + conditioning", "newly registered", "another"]
    for listed in (names, unknown):
        styles = [line_style(name, listed) for name in listed]
        assert len({(style["color"], style["marker"]) for style in styles}) == len(listed)
    first, second = line_styles(["maml", "maml"])
    assert first["color"] == second["color"]
    assert first["linestyle"] != second["linestyle"]
    plain, conditioned = line_style("gap"), line_style("gap + conditioning")
    assert plain | {"markeredgecolor": "black"} == conditioned


def test_figures_are_embedded_without_other_files(tmp_path: Path) -> None:
    image = embed_figure(comparison_figure([evaluation("maml", "run")], [[]]))
    assert image.startswith('<img alt="figure" src="data:image/png;base64,')
    assert "http" not in image


@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize("stacked", [False, True])
def test_legend_of_a_comparison_hides_no_panel(logged: bool, stacked: bool) -> None:
    labels = ["maml", "maml + conditioning", "maml, shared head + conditioning"]
    entry = {"update": 1, "validation_accuracy": [0.2, 0.4], "validation_condition_number": [9.0]}
    log = [entry, {**entry, "update": 2}] if logged else []
    figure = comparison_figure([evaluation(label, "run") for label in labels], [log] * 3, stacked=stacked)
    figure.draw_without_rendering()
    (legend,) = figure.findobj(Legend)
    assert [text.get_text() for text in legend.get_texts()] == labels
    box = legend.get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert not any(box.overlaps(axes.get_tightbbox()) for axes in figure.axes)


@pytest.mark.parametrize("name", ["gap", "gap + conditioning"])
def test_the_papers_numbers_are_hollow(name: str) -> None:
    ours, paper = line_style(name), line_style(name, hollow=True)
    assert ours["color"] == paper["color"]
    assert (paper["markerfacecolor"], paper["linestyle"]) == ("white", ":")
