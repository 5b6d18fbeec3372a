"""Names of ``firststep.deployment`` that only our other packages use. They may change without notice."""

from firststep.deployment.export import require_exporter
from firststep.deployment.saved import load_classifier
from firststep.deployment.saving import WEIGHTS, classifier_file
from firststep.deployment.web_runtime import download_runtime, find_web_runtime

__all__ = [
    "WEIGHTS",
    "classifier_file",
    "download_runtime",
    "find_web_runtime",
    "load_classifier",
    "require_exporter",
]
