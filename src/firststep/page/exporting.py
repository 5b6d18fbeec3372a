"""Export an adapted model as a file, as ``firststep adapt --export`` does."""

from __future__ import annotations

import tempfile
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from firststep.deployment import export_model, make_deployable
from firststep.deployment._internal import find_web_runtime
from firststep.evaluation import adapt_to_images
from firststep.meta_learner import MetaLearner
from firststep.page.adapting import Lesson, learner_for
from firststep.page.few_shot import adapt_lesson
from firststep.page.models import PageModel
from firststep.page.turns import check
from firststep.training import TrainConfig

CHECKED_IMAGES = 8
"""Number of examples on which the file must give the same probabilities."""

_one_at_a_time = threading.Lock()
"""A lock, because torch.export and its warnings are process-wide."""


def export(
    model: PageModel, meta: MetaLearner, lesson: Lesson, steps: int | None, format: str, stop: threading.Event
) -> bytes:
    """Return the content of the file; ``steps`` None chooses their number. Nothing stays on disk."""
    learner_for(meta, len(lesson.classes))
    if format == "html":
        find_web_runtime(download=False)  # the server itself downloads nothing
    if model.has_fixed_features:
        adapted = adapt_lesson(meta, model.trained.background, lesson, None, model.preprocessing)
    else:
        adapted = adapt_to_images(
            meta,
            lesson.support(meta, model.preprocessing),
            steps=steps,
            classifier="steps",
            validate=True,
            progress=partial(check, stop),
        )
    module, card = make_deployable(
        adapted, model.preprocessing, run=model.trained.run.name, config=_without_folders(model.config)
    )
    with tempfile.TemporaryDirectory() as folder, _one_at_a_time:
        check(stop)
        path = Path(folder) / f"adapted.{format}"
        export_model(path, module, card, lesson.examples[:CHECKED_IMAGES])
        return path.read_bytes()


def _without_folders(config: TrainConfig) -> dict[str, Any]:
    """Return the configuration without local paths: the file leaves this machine."""
    values = {name: getattr(config, name) for name in ("data_path", "cache", "init", "pretrained")}
    hidden = {name: type(value)(Path(value).name) for name, value in values.items() if value is not None}
    return replace(config, **hidden).to_json()
