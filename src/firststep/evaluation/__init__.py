"""Per-step metrics of a meta-learner: measuring, testing, comparing, diagnosing, adapting to images."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from firststep.utils.extras import extra

if TYPE_CHECKING:
    from firststep.evaluation.comparison_page import PAGE_STYLE, html_report
    from firststep.evaluation.figures import comparison_figure, spectrum_figure

with extra("cli", "firststep.evaluation"):
    from firststep.evaluation.comparison import (
        PairedDifference,
        comparison_frame,
        comparison_table,
        distinct_labels,
        initial_condition_number,
        metrics_table,
        paired_differences,
        steps_table,
    )
    from firststep.evaluation.diagnosis import SUBSETS, Spectrum, diagnose
    from firststep.evaluation.evaluate import DEFAULT_EPISODES, DEFAULT_STEPS, TEST_SEED, evaluate
    from firststep.evaluation.evaluation import Evaluation, load_evaluation
    from firststep.evaluation.first_step import FirstStep, measure_first_step
    from firststep.evaluation.image_folders import (
        AdaptedModel,
        ImageSupport,
        adapt_to_images,
        image_files,
        load_images,
        load_support,
    )
    from firststep.evaluation.measure import Measurement, half_width, measure_task, measure_tasks, to_task
    from firststep.evaluation.metrics import METRICS, AdaptationState, Metric
    from firststep.evaluation.probes import Predict, logistic, nearest_means, nearest_means_accuracy, ridge

__all__ = [
    "DEFAULT_EPISODES",
    "DEFAULT_STEPS",
    "METRICS",
    "PAGE_STYLE",
    "SUBSETS",
    "TEST_SEED",
    "AdaptationState",
    "AdaptedModel",
    "Evaluation",
    "FirstStep",
    "ImageSupport",
    "Measurement",
    "Metric",
    "PairedDifference",
    "Predict",
    "Spectrum",
    "adapt_to_images",
    "comparison_figure",
    "comparison_frame",
    "comparison_table",
    "diagnose",
    "distinct_labels",
    "evaluate",
    "half_width",
    "html_report",
    "image_files",
    "initial_condition_number",
    "load_evaluation",
    "load_images",
    "load_support",
    "logistic",
    "measure_first_step",
    "measure_task",
    "measure_tasks",
    "metrics_table",
    "nearest_means",
    "nearest_means_accuracy",
    "paired_differences",
    "ridge",
    "spectrum_figure",
    "steps_table",
    "to_task",
]

# Figures need matplotlib, which takes half a second to import: training and its worker processes do without.
_WITH_FIGURES = {
    "PAGE_STYLE": "comparison_page",
    "comparison_figure": "figures",
    "html_report": "comparison_page",
    "spectrum_figure": "figures",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_FIGURES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra("cli", "firststep.evaluation"):
        return getattr(import_module(f"{__name__}.{_WITH_FIGURES[name]}"), name)
