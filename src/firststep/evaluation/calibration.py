"""Calibrate probabilities with one temperature, fitted to held-out samples.

A temperature T divides all log-probabilities. It changes the confidence of a classifier, never its
prediction. The fitted T has the lowest log-loss on held-out samples (Guo et al., "On calibration of modern
neural networks", ICML 2017). If all of them are classified correctly, the log-loss alone would drive T to 0:
full confidence from twenty images. One more sample with a uniform label prevents this, in the spirit of
Platt's targets for logistic calibration.
"""

from __future__ import annotations

import torch
from torch import Tensor

FEWEST_TO_CALIBRATE = 20
"""Smallest number of held-out samples to fit a temperature to."""

_RANGE = (0.05, 20.0)


def fit_temperature(log_probabilities: Tensor, labels: Tensor) -> float | None:
    """Return the temperature for held-out log-probabilities [n, classes], or None if there are too few.

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
    return float(
        temperatures[int(_losses(log_probabilities.cpu().double(), labels.cpu(), temperatures).argmin())]
    )


def _losses(log_probabilities: Tensor, labels: Tensor, temperatures: Tensor) -> Tensor:
    """Return the summed log-loss at each temperature, plus that of one sample with mean outputs and a uniform
    label."""
    rescaled = (log_probabilities / temperatures[:, None, None]).log_softmax(2)
    of_labels = rescaled[:, torch.arange(len(labels)), labels].sum(1)
    return -(of_labels + rescaled.mean((1, 2)))
