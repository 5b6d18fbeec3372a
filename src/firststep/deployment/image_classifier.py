"""The module that is exported: pixels in, probabilities out."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from firststep.data import Preprocessing
from firststep.evaluation._internal import logits_of


class ImageClassifier(nn.Module):
    """A frozen network with everything between the pixels of resized images and their probabilities.

    The input is uint8 [n, image_size, image_size, channels], as in Pillow and numpy (RGB or one grey
    channel). The output is float32 [n, classes]; each row sums to 1. With ``has_none`` it is a pair: the
    probabilities and a score [n] of "none of these classes". Drawings (``ink``) on light paper are inverted,
    as in :class:`firststep.data.Preprocessing`.

    Args:
        network: normalised images → logits, in ``eval()`` mode.
        preprocessing: normalisation of the images.
        temperature: divisor of the logits.
        has_none: whether the last column of the network's output is the score.

    Examples:
        >>> from firststep.deployment import make_deployable
        >>> classifier, card = make_deployable(adapted, trained.preprocessing)
        >>> classifier(torch.zeros(1, 16, 16, 1, dtype=torch.uint8)).sum().round()
        tensor(1.)
    """

    scale: Tensor
    offset: Tensor

    def __init__(
        self,
        network: nn.Module,
        preprocessing: Preprocessing,
        temperature: float = 1.0,
        has_none: bool = False,
    ) -> None:
        super().__init__()
        self.network = network
        self.temperature = temperature
        self.has_none = has_none
        self.ink = preprocessing.ink
        # normalise() is affine in the pixels, so its values at black and white determine it.
        black, white = (
            torch.from_numpy(preprocessing.normalise(_uniform(preprocessing, value))).double().flatten()
            for value in (0, 255)
        )
        self.register_buffer("scale", ((white - black) / 255).float())
        self.register_buffer("offset", black.float())

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        return self.answers(logits_of(self.network, self.normalised(images)))

    def normalised(self, images: Tensor) -> Tensor:
        """Return the input of the network, [n, channels, image_size, image_size]."""
        if self.ink:
            edges = images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1]
            border = torch.cat([edge.flatten(1) for edge in edges], 1)
            is_light = 2 * (border > 127).sum(1) > border.shape[1]
            images = torch.where(is_light[:, None, None, None], 255 - images, images)
        pixels = images.permute(0, 3, 1, 2).float()
        return pixels * self.scale[:, None, None] + self.offset[:, None, None]

    def answers(self, outputs: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Return probabilities, and the unusualness if there is one, of the network's outputs."""
        if self.has_none:
            return outputs[:, :-1].softmax(1), outputs[:, -1]
        return (outputs / self.temperature).softmax(1)


def _uniform(preprocessing: Preprocessing, value: int) -> np.ndarray:
    return np.full((1, 1, preprocessing.channels), value, dtype=np.uint8)
