"""MetaLearner: a network and an update rule as one ``nn.Module``."""

from firststep.meta_learner.module import MetaLearner, TaskGradient
from firststep.meta_learner.support_statistics import (
    adapted_network,
    give_rows,
    make_independent,
    replace_module,
)

__all__ = [
    "MetaLearner",
    "TaskGradient",
    "adapted_network",
    "give_rows",
    "make_independent",
    "replace_module",
]
