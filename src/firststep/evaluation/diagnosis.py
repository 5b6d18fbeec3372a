"""The eigenvalue spectrum of a model's Gram matrix on given tasks, for several parameter subsets."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from torch import nn

from firststep.adaptation import support_gram
from firststep.conditioning import condition_number, eigenvalues, log_eigenvalue_variance, numerical_rank
from firststep.errors import FirststepError
from firststep.evaluation.figures import style
from firststep.network import FunctionalModule, Params
from firststep.task import Task

SUBSETS = ("cls", "emb", "ebn", "all")


@dataclass(frozen=True)
class Spectrum:
    """One parameter subset over a number of tasks."""

    subset: str
    eigenvalues: np.ndarray
    """[tasks, n], each row descending"""
    condition_number: float
    """Geometric mean over tasks."""
    loss: float
    """Mean variance of the log-eigenvalues: the conditioning loss."""
    rank: float
    """Mean number of eigenvalues above the noise."""


def diagnose(
    model: FunctionalModule,
    params: Params | None,
    tasks: Iterable[Task],
    subsets: Sequence[str] = SUBSETS,
    progress: Callable[[], None] | None = None,
) -> list[Spectrum]:
    """Spectra on the support sets of ``tasks`` at ``params`` (default the module's own)."""
    for subset in subsets:
        try:
            model.subset(subset)
        except ValueError as error:
            raise FirststepError(str(error)) from None
    collected: dict[str, list[tuple[np.ndarray, float, float, float]]] = {subset: [] for subset in subsets}
    for task in tasks:
        for subset in subsets:
            gram = support_gram(model, task.support_x, task.support_y, params=params, subset=subset).detach()
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


def spectrum_figure(spectra: Sequence[Spectrum]) -> Figure:
    """Eigenvalues relative to the largest: the median over tasks, and the middle half as a band."""
    figure = Figure(figsize=(5.2, 3.8), layout="constrained")
    axes = figure.subplots()
    for index, spectrum in enumerate(spectra):
        relative = np.maximum(spectrum.eigenvalues / spectrum.eigenvalues[:, :1], 1e-18)
        low, middle, high = np.percentile(relative, [25, 50, 75], axis=0)
        ranks = np.arange(1, relative.shape[1] + 1)
        axes.plot(
            ranks, middle, label=f"{spectrum.subset} (κ = {spectrum.condition_number:.3g})", **style(index)
        )
        axes.fill_between(ranks, low, high, alpha=0.2, color=style(index)["color"], linewidth=0)
    axes.set_yscale("log")
    axes.set(
        xlabel="eigenvalue, largest first", ylabel="eigenvalue / largest", title="Spectrum of the Gram matrix"
    )
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure


def import_module(where: str) -> nn.Module:
    """``package.module:NAME``: an ``nn.Module``, or a function without arguments that makes one."""
    module_name, _, attribute = where.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise FirststepError(f"cannot import {where!r}: {error}") from None
    finally:
        sys.path.pop(0)
    made = found if isinstance(found, nn.Module) else found()
    if not isinstance(made, nn.Module):
        raise FirststepError(f"{where} is a {type(made).__name__}, not an nn.Module")
    return made
