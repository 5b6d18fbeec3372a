"""Names of ``firststep.deployment`` that only our other packages use. They may change without notice."""

from firststep.deployment.export import require_exporter
from firststep.deployment.saving import WEIGHTS, classifier_file

__all__ = ["WEIGHTS", "classifier_file", "require_exporter"]
