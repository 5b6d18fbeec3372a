"""Losses per sample, registered where they are defined, and the residuals that follow from them."""

# isort: off
# The order of these imports is the order of LOSSES, hence of help texts.
from firststep.losses.classes import binary_cross_entropy, cross_entropy, token_cross_entropy
from firststep.losses.regression import absolute_error, huber, poisson, squared_error
# isort: on

from firststep.losses.loss import LOSSES, Kind, Loss, ResidualKind, as_loss, register_loss
from firststep.losses.residuals import Residuals
from firststep.losses.targets import first_tensor

__all__ = [
    "LOSSES",
    "Kind",
    "Loss",
    "ResidualKind",
    "Residuals",
    "absolute_error",
    "as_loss",
    "binary_cross_entropy",
    "cross_entropy",
    "first_tensor",
    "huber",
    "poisson",
    "register_loss",
    "squared_error",
    "token_cross_entropy",
]
