"""Per-step metrics of a meta-learner: measuring, testing, comparing, diagnosing, adapting to images."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from firststep.utils.extras import extra

if TYPE_CHECKING:
    from firststep.evaluation.comparison_page import PAGE_STYLE, html_report
    from firststep.evaluation.confusion_plot import confusion_figure
    from firststep.evaluation.figures import comparison_figure, spectrum_figure

with extra("cli", "firststep.evaluation"):
    from firststep.evaluation.adapted_model import AdaptedModel, adapt_to_images
    from firststep.evaluation.calibration import FEWEST_TO_CALIBRATE, fit_temperature
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
    from firststep.evaluation.confusion import Confusion
    from firststep.evaluation.cross_validation import (
        CLASSIFIERS,
        STEPS,
        CrossValidation,
        cross_validate,
        stratified_folds,
    )
    from firststep.evaluation.diagnosis import SUBSETS, Spectrum, diagnose
    from firststep.evaluation.evaluate import DEFAULT_EPISODES, DEFAULT_STEPS, TEST_SEED, evaluate
    from firststep.evaluation.evaluation import Evaluation, load_evaluation
    from firststep.evaluation.first_step import FirstStep, measure_first_step
    from firststep.evaluation.frozen_network import (
        blank_network,
        check_independent,
        frozen_network,
        logits_of,
    )
    from firststep.evaluation.image_folders import (
        ImageFiles,
        ImageSupport,
        class_numbers,
        image_files,
        load_images,
        load_pixels,
        load_support,
        query_files,
        support_files,
    )
    from firststep.evaluation.measure import Measurement, half_width, measure_task, measure_tasks, to_task
    from firststep.evaluation.metrics import METRICS, AdaptationState, Metric
    from firststep.evaluation.probes import Predict, logistic, nearest_means, nearest_means_accuracy, ridge

__all__ = [
    "CLASSIFIERS",
    "DEFAULT_EPISODES",
    "DEFAULT_STEPS",
    "FEWEST_TO_CALIBRATE",
    "METRICS",
    "PAGE_STYLE",
    "STEPS",
    "SUBSETS",
    "TEST_SEED",
    "AdaptationState",
    "AdaptedModel",
    "Confusion",
    "CrossValidation",
    "Evaluation",
    "FirstStep",
    "ImageFiles",
    "ImageSupport",
    "Measurement",
    "Metric",
    "PairedDifference",
    "Predict",
    "Spectrum",
    "adapt_to_images",
    "blank_network",
    "check_independent",
    "class_numbers",
    "comparison_figure",
    "comparison_frame",
    "comparison_table",
    "confusion_figure",
    "cross_validate",
    "diagnose",
    "distinct_labels",
    "evaluate",
    "fit_temperature",
    "frozen_network",
    "half_width",
    "html_report",
    "image_files",
    "initial_condition_number",
    "load_evaluation",
    "load_images",
    "load_pixels",
    "load_support",
    "logistic",
    "logits_of",
    "measure_first_step",
    "measure_task",
    "measure_tasks",
    "metrics_table",
    "nearest_means",
    "nearest_means_accuracy",
    "paired_differences",
    "query_files",
    "ridge",
    "spectrum_figure",
    "steps_table",
    "stratified_folds",
    "support_files",
    "to_task",
]

# Figures need matplotlib, which takes half a second to import: training and its worker processes do without.
_WITH_FIGURES = {
    "PAGE_STYLE": "comparison_page",
    "comparison_figure": "figures",
    "confusion_figure": "confusion_plot",
    "html_report": "comparison_page",
    "spectrum_figure": "figures",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_FIGURES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with extra("cli", "firststep.evaluation"):
        return getattr(import_module(f"{__name__}.{_WITH_FIGURES[name]}"), name)
