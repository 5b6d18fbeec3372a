"""Models on the Hugging Face Hub: saved, described by a model card, uploaded and loaded again."""

from firststep.utils.extras import extra

with extra("hub", "firststep.hub"):
    from firststep.hub.classifier import HubClassifier
    from firststep.hub.learner import HubLearner

__all__ = ["HubClassifier", "HubLearner"]
