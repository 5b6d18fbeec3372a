"""Names of ``firststep.deployment`` for our other packages alone. They may change without notice."""

from firststep.deployment.export import require_exporter
from firststep.deployment.saving import WEIGHTS, classifier_file

__all__ = ["WEIGHTS", "classifier_file", "require_exporter"]
