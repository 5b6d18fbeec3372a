"""The help text of every argument that takes a trained model."""

from __future__ import annotations

from firststep.training import builtin_models

A_RUN = f"Folder of a run, or one of {', '.join(builtin_models())}"
