"""The classifier of fixed features as a module: averaged probes and "none of these".

"None of these". A sample's score is its largest cosine to a class mean, plus the same after subtracting a
centre from all features. The centre is the mean of background features if there are any, otherwise the mean
of the class means. Held-out samples give the mean and the deviation of the score of a sample that belongs to
a class. The head returns how unusual a score is among them, between 0 and 1: above :data:`NONE_LIMIT` (0.95)
the sample is taken for none of the classes, and so are about 5 % of those that belong to one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

NONE_LIMIT = 0.95
"""Share of the samples of the classes that are less unusual than what is refused."""


@dataclass(frozen=True)
class HeadForm:
    """Shape of a :class:`FewShotHead` besides its numbers of features and classes, as files store it."""

    members: int = 1
    """number of averaged probes"""
    has_none: bool = False
    """whether it scores "none of these\""""
    power: float = 1.0
    """exponent of the features; ½ spreads the small values of averaged rectified activations"""

    def build(self, features: int, classes: int) -> FewShotHead:
        return FewShotHead(self, features, classes)


class FewShotHead(nn.Module):
    """Features [n, d] → log-probabilities [n, classes] and, if ``form.has_none``, a column of unusualness.

    p(class) is the mean over the members of softmax(W u + b), where u is v / ‖v‖ - centre, scaled to length
    one, and v = sign(x) |x|^power. The temperatures are in W and b.
    """

    centre: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(self, form: HeadForm, features: int, classes: int) -> None:
        super().__init__()
        self.form = form
        self.register_buffer("centre", torch.zeros(features))
        self.register_buffer("weight", torch.zeros(form.members, classes, features))
        self.register_buffer("bias", torch.zeros(form.members, classes))
        self.none = NoneScore(features, classes) if form.has_none else None

    def forward(self, features: Tensor) -> Tensor:
        base = normalised(features, self.form.power)
        unit = F.normalize(base - self.centre, dim=1)
        members, classes, _ = self.weight.shape
        logits = F.linear(unit, self.weight.flatten(0, 1), self.bias.flatten())
        log_p = logits.unflatten(1, (members, classes)).log_softmax(2).logsumexp(1)
        log_p = log_p.log_softmax(1)
        if self.none is None:
            return log_p
        return torch.cat([log_p, self.none(base)[:, None]], 1)


class NoneScore(nn.Module):
    """Unit features [n, d] → unusualness [n] between 0 and 1."""

    centre: Tensor
    means: Tensor
    centred_means: Tensor
    location: Tensor
    scale: Tensor

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(features))
        self.register_buffer("means", torch.zeros(classes, features))
        self.register_buffer("centred_means", torch.zeros(classes, features))
        self.register_buffer("location", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    @staticmethod
    @torch.no_grad()
    def fit(unit: Tensor, labels: Tensor, background: Tensor | None) -> NoneScore:
        """Return the score of a support set, before its calibration."""
        classes = int(labels.max()) + 1
        found = NoneScore(unit.shape[1], classes).to(unit)
        means = _class_means(unit, labels)
        found.centre = means.mean(0) if background is None else background.mean(0)
        found.means = F.normalize(means, dim=1)
        centred = F.normalize(unit - found.centre, dim=1)
        found.centred_means = F.normalize(_class_means(centred, labels), dim=1)
        return found

    def parts(self, unit: Tensor) -> Tensor:
        """Return the largest cosine to a class mean without and with the centre subtracted, [n, 2]."""
        centred = F.normalize(unit - self.centre, dim=1)
        return torch.stack([(unit @ self.means.T).amax(1), (centred @ self.centred_means.T).amax(1)], 1)

    @torch.no_grad()
    def calibrate(self, known: Tensor) -> None:
        """Take the distribution of the scores of held-out samples as normal."""
        count = len(known)
        self.location = known.mean()
        # Deviation of a new score from a mean of `count` scores
        self.scale = known.std().clamp_min(1e-6) * (1 + 1 / count) ** 0.5

    def forward(self, unit: Tensor) -> Tensor:
        distance = (self.location - self.parts(unit).sum(1)) / self.scale
        return 0.5 * (1 + torch.erf(distance / 2**0.5))


def normalised(features: Tensor, power: float) -> Tensor:
    """Return sign(x) |x|^power, scaled to length one."""
    if power != 1:
        features = features.sign() * features.abs() ** power
    return F.normalize(features, dim=1)


def _class_means(unit: Tensor, labels: Tensor) -> Tensor:
    return torch.stack([unit[labels == label].mean(0) for label in range(int(labels.max()) + 1)])
