"""Names of ``firststep.deployment`` for our other packages alone. They may change without notice."""

from firststep.deployment.export import require_exporter

__all__ = ["require_exporter"]
