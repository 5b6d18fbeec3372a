"""The functional layer: parameters are plain dicts of tensors that functions take and return."""

from firststep.adaptation import (
    Aux,
    Learner,
    StepChoice,
    Trajectory,
    adapt,
    choose_steps,
    inner_step,
    iterate_steps,
    support_gram,
)
from firststep.losses import Residuals
from firststep.metagradient import (
    EngineOptions,
    MetaGradient,
    MetaGradientResult,
    TaskReport,
    meta_gradient,
)
from firststep.network import FunctionalModule, Output, Params
from firststep.task import Inputs, Task, as_task

__all__ = [
    "Aux",
    "EngineOptions",
    "FunctionalModule",
    "Inputs",
    "Learner",
    "MetaGradient",
    "MetaGradientResult",
    "Output",
    "Params",
    "Residuals",
    "StepChoice",
    "Task",
    "TaskReport",
    "Trajectory",
    "adapt",
    "as_task",
    "choose_steps",
    "inner_step",
    "iterate_steps",
    "meta_gradient",
    "support_gram",
]
