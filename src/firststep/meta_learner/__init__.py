"""MetaLearner: a network and an update rule as one ``nn.Module``."""

from firststep.meta_learner.module import MetaLearner, TaskGradient

__all__ = ["MetaLearner", "TaskGradient"]
