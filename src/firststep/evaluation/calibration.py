"""Probabilities that mean what they say: one temperature, fitted to what was held out.

A temperature T divides all log-probabilities, which changes how sure a classifier is but never what it
answers. It is the one with the lowest log-loss on samples that the classifier was not fitted to (Guo et al.,
"On calibration of modern neural networks", ICML 2017). Where all of those are classified right, the log-loss
alone would take T to 0, absolute certainty from twenty images: so one more sample that could be of any class
is counted with them, in the spirit of Platt's targets for logistic calibration.
"""

from __future__ import annotations

import torch
from torch import Tensor

FEWEST_TO_CALIBRATE = 20
"""Held-out samples below which a temperature would be chance."""

_RANGE = (0.05, 20.0)


def fit_temperature(log_probabilities: Tensor, labels: Tensor) -> float | None:
    """The temperature for held-out log-probabilities [n, classes]; None if they are too few to fit one.

    Examples:
        >>> from firststep.evaluation import fit_temperature
        >>> labels = torch.arange(5).repeat(5)
        >>> sure_and_wrong = torch.log_softmax(9 * torch.eye(5).double()[labels.roll(1)], -1)
        >>> fit_temperature(sure_and_wrong, labels) > 1
        True
    """
    if len(labels) < FEWEST_TO_CALIBRATE or not bool(log_probabilities.isfinite().all()):
        return None
    low, high = _RANGE
    temperatures = torch.logspace(0, 1, 400, base=high / low, dtype=torch.float64) * low
    losses = [_loss(log_probabilities.double().cpu(), labels.cpu(), float(t)) for t in temperatures]
    return float(temperatures[int(torch.stack(losses).argmin())])


def _loss(log_probabilities: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Summed log-loss, and that of one more sample with the mean sample's outputs and all labels equally."""
    rescaled = (log_probabilities / temperature).log_softmax(1)
    return -(rescaled.gather(1, labels[:, None]).sum() + rescaled.mean())
