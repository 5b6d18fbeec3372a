"""The exact gradient of the outer loss through an inner trajectory, and the loss itself."""

from firststep.conditioning import CONDITIONING_LOSSES
from firststep.metagradient.engine import MetaGradient, meta_gradient
from firststep.metagradient.objective import Conditioning
from firststep.metagradient.options import ENGINES, EngineOptions
from firststep.metagradient.result import MetaGradientResult, TaskReport
from firststep.metagradient.stepwise import DEFAULT_MEMORY, MOST_SAVED

__all__ = [
    "CONDITIONING_LOSSES",
    "DEFAULT_MEMORY",
    "ENGINES",
    "MOST_SAVED",
    "Conditioning",
    "EngineOptions",
    "MetaGradient",
    "MetaGradientResult",
    "TaskReport",
    "meta_gradient",
]
