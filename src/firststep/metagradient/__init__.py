"""The exact gradient of the outer loss through an inner trajectory, and the loss itself."""

from firststep.metagradient.engine import ENGINES, MetaGradient, meta_gradient
from firststep.metagradient.objective import CONDITIONING_LOSSES, Conditioning
from firststep.metagradient.result import MetaGradientResult, TaskReport

__all__ = [
    "CONDITIONING_LOSSES",
    "ENGINES",
    "Conditioning",
    "MetaGradient",
    "MetaGradientResult",
    "TaskReport",
    "meta_gradient",
]
