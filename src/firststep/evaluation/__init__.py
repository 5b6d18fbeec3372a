"""Evaluate a meta-learner step by step: metrics, tests, comparisons, diagnosis, adaptation to images."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from firststep.utils.extras import extra

if TYPE_CHECKING:
    from firststep.evaluation.comparison_page import html_report
    from firststep.evaluation.confusion_plot import confusion_figure
    from firststep.evaluation.figures import comparison_figure, spectrum_figure

with extra("cli", "firststep.evaluation"):
    from firststep.evaluation.adapted_model import AdaptedModel, adapt_to_images
    from firststep.evaluation.calibration import fit_temperature
    from firststep.evaluation.comparison import (
        PairedDifference,
        comparison_frame,
        comparison_table,
        metrics_table,
        paired_differences,
        steps_table,
    )
    from firststep.evaluation.confusion import Confusion
    from firststep.evaluation.cross_validation import (
        CLASSIFIERS,
        CrossValidation,
        cross_validate,
    )
    from firststep.evaluation.diagnosis import Spectrum, diagnose
    from firststep.evaluation.evaluate import evaluate
    from firststep.evaluation.evaluation import Evaluation, load_evaluation
    from firststep.evaluation.first_step import FirstStep, measure_first_step
    from firststep.evaluation.image_folders import (
        ImageFiles,
        ImageSupport,
        load_images,
        load_support,
        query_files,
    )
    from firststep.evaluation.measure import Measurement, half_width, measure_task, measure_tasks, to_task
    from firststep.evaluation.metrics import METRICS, AdaptationState, Metric, metrics_of, register_metric
    from firststep.evaluation.probes import Predict, logistic, nearest_means, ridge
    from firststep.evaluation.settings import EvaluationSettings

__all__ = [
    "CLASSIFIERS",
    "METRICS",
    "AdaptationState",
    "AdaptedModel",
    "Confusion",
    "CrossValidation",
    "Evaluation",
    "EvaluationSettings",
    "FirstStep",
    "ImageFiles",
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
    "confusion_figure",
    "cross_validate",
    "diagnose",
    "evaluate",
    "fit_temperature",
    "half_width",
    "html_report",
    "load_evaluation",
    "load_images",
    "load_support",
    "logistic",
    "measure_first_step",
    "measure_task",
    "measure_tasks",
    "metrics_of",
    "metrics_table",
    "nearest_means",
    "paired_differences",
    "query_files",
    "register_metric",
    "ridge",
    "spectrum_figure",
    "steps_table",
    "to_task",
]

# Import matplotlib on first use: it takes half a second, and training and its workers do not need it.
_WITH_FIGURES = {
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
