"""Names of ``firststep.data`` for our other packages alone. They may change without notice."""

from firststep.data.download import fetch_file

__all__ = ["fetch_file"]
