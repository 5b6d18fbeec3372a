"""Eigenvalue spectra of a model's Gram matrix on given tasks, for several parameter subsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from firststep.adaptation import support_gram
from firststep.conditioning import condition_number, eigenvalues, log_eigenvalue_variance, numerical_rank
from firststep.errors import FirststepError
from firststep.losses import Loss, Residuals, cross_entropy
from firststep.network import FunctionalModule
from firststep.task import Task

SUBSETS = ("cls", "emb", "ebn", "all")


@dataclass(frozen=True)
class Spectrum:
    """The spectrum of one parameter subset over several tasks.

    Examples:
        >>> from firststep.evaluation import diagnose
        >>> (spectrum,) = diagnose(trained.meta.functional, [glyph_task], subsets=["cls"])
        >>> spectrum.subset, spectrum.eigenvalues.shape
        ('cls', (1, 10))
    """

    subset: str
    eigenvalues: np.ndarray
    """Eigenvalues [tasks, n], each row descending."""
    condition_number: float
    """Condition number, geometric mean over tasks."""
    loss: float
    """Conditioning loss: mean variance of the log-eigenvalues."""
    rank: float
    """Mean number of eigenvalues above rounding error."""


def diagnose(
    model: FunctionalModule,
    tasks: Iterable[Task],
    subsets: Sequence[str] = SUBSETS,
    progress: Callable[[], None] | None = None,
    *,
    loss: Loss = cross_entropy,
    residuals: Residuals | None = None,
) -> list[Spectrum]:
    """Compute spectra on the support sets of ``tasks`` at the module's parameters.

    Args:
        model: the network.
        tasks: the tasks.
        subsets: parameter subsets.
        progress: called after each task.
        loss: loss of the support set.
        residuals: which residuals; default all.

    Examples:
        >>> from firststep.evaluation import diagnose
        >>> spectra = diagnose(trained.meta.functional, [glyph_task], subsets=["cls", "emb"])
        >>> [spectrum.subset for spectrum in spectra]
        ['cls', 'emb']
    """
    for subset in subsets:
        try:
            model.check_spectrum(subset)
        except ValueError as error:
            raise FirststepError(str(error)) from None
    collected: dict[str, list[tuple[np.ndarray, float, float, float]]] = {subset: [] for subset in subsets}
    for task in tasks:
        for subset in subsets:
            gram = support_gram(
                model, task.support_x, task.support_y, subset=subset, loss=loss, residuals=residuals
            ).detach()
            collected[subset].append(
                (
                    eigenvalues(gram).flip(-1).cpu().numpy(),
                    condition_number(gram).log10().item(),
                    log_eigenvalue_variance(gram).item(),
                    numerical_rank(gram).item(),
                )
            )
        if progress is not None:
            progress()
    return [
        Spectrum(
            subset,
            np.stack([values for values, *_ in rows]),
            float(10 ** np.mean([kappa for _, kappa, *_ in rows])),
            float(np.mean([loss for *_, loss, _ in rows])),
            float(np.mean([rank for *_, rank in rows])),
        )
        for subset, rows in collected.items()
    ]
