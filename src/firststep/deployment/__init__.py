"""Save adapted classifiers in three formats, check the files, and read them back to classify images."""

from firststep.utils.extras import extra

with extra("cli", "firststep.deployment"):
    from firststep.deployment.card import ModelCard
    from firststep.deployment.export import EXPORT_ENDINGS, export_model
    from firststep.deployment.image_classifier import ImageClassifier
    from firststep.deployment.loading import Answers, DeployedModel, deployed, load_deployed
    from firststep.deployment.saving import make_deployable, save_adapted

__all__ = [
    "EXPORT_ENDINGS",
    "Answers",
    "DeployedModel",
    "ImageClassifier",
    "ModelCard",
    "deployed",
    "export_model",
    "load_deployed",
    "make_deployable",
    "save_adapted",
]
