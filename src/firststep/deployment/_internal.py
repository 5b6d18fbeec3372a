"""Names of ``firststep.deployment`` that only our other packages use. They may change without notice."""

from firststep.deployment.export import require_exporter
from firststep.deployment.fixed_features import FixedFeatures, answers_from_features
from firststep.deployment.saved import load_classifier
from firststep.deployment.saving import WEIGHTS, classifier_file
from firststep.deployment.texts import (
    TEXT_ENDINGS,
    TextCard,
    TextClassifier,
    TextEncoder,
    export_texts,
    is_text_classifier,
    load_text_classifier,
)
from firststep.deployment.web_runtime import download_runtime, find_web_runtime

__all__ = [
    "TEXT_ENDINGS",
    "WEIGHTS",
    "FixedFeatures",
    "TextCard",
    "TextClassifier",
    "TextEncoder",
    "answers_from_features",
    "classifier_file",
    "download_runtime",
    "export_texts",
    "find_web_runtime",
    "is_text_classifier",
    "load_classifier",
    "load_text_classifier",
    "require_exporter",
]
