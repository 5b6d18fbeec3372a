"""``firststep diagnose``: how well conditioned a model is."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated

import torch
import tyro
from torch import nn

from firststep.cli.progress import progress_bar
from firststep.cli.terminal import console, print_wide
from firststep.data import Dataset, Episodes, open_dataset
from firststep.errors import FirststepError
from firststep.evaluation import SUBSETS, TEST_SEED, spectrum_figure, to_task
from firststep.evaluation import diagnose as measure
from firststep.network import FunctionalModule
from firststep.plotting import save_figure
from firststep.training import data_for, load_trained
from firststep.utils import Table

DEFAULT_WAYS = 5


def diagnose(
    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN|MODULE")],
    /,
    *,
    data: str | None = None,
    data_path: Path | None = None,
    image_size: int | None = None,
    classifier: str | None = None,
    subsets: tuple[str, ...] = SUBSETS,
    ways: int | None = None,
    shots: int = 5,
    tasks: int = 20,
    split: str = "test",
    plot: Annotated[Path, tyro.conf.arg(metavar="FILE.png")] = Path("spectrum.png"),
) -> None:
    """Eigenvalue spectrum and condition number on test tasks, for each parameter subset.

    Args:
        model: Folder of a run, builtin:glyphs, or your own module as package.module:NAME, where NAME is an
            nn.Module or a function that makes one.
        data: Dataset; the run's own if left out, glyphs for a module.
        data_path: Where the dataset is.
        image_size: For a module: side of its images.
        classifier: For a module: attribute path of its final linear layer, if it is not found.
        subsets: Parameter subsets: cls, emb, ebn, body, all, or unions such as cls+emb. With a shared or zero
            head only those with cls, because nothing else has a gradient before the first step.
        ways: Classes of a task; if left out as a run was trained, and 5 for a module.
        shots: Support images of each class.
        tasks: How many tasks.
        split: train, val or test.
        plot: Where the figure of the spectrum goes (.png, .svg or .pdf).
    """
    if tasks < 1:
        raise FirststepError(f"--tasks must be at least 1, not {tasks}")
    with progress_bar() as progress:
        if ":" in model and not model.startswith("builtin:"):
            dataset: Dataset = open_dataset(
                data or "glyphs", data_path, image_size=image_size, progress=progress
            )
            try:
                network = FunctionalModule(import_module(model), classifier)
            except ValueError as error:
                raise FirststepError(f"{error}; name it with --classifier") from None
        else:
            if classifier is not None or image_size is not None:
                raise FirststepError("--classifier and --image-size are for modules: a run knows its own")
            trained = load_trained(model, device="cpu")
            ways = trained.meta.num_classes if ways is None else ways
            try:
                network = trained.meta.for_classes(ways).functional
            except ValueError as error:
                raise FirststepError(f"--ways {ways}: {error}") from None
            if network.head != "per-class" and subsets == SUBSETS:
                subsets = ("cls", "all")  # the others have no gradient before the first step
            dataset = data_for(trained, data, data_path, progress)
        episodes = Episodes(
            dataset.split(split), ways=ways or DEFAULT_WAYS, shots=shots, queries=1, seed=TEST_SEED
        )
        done = 0

        def tick() -> None:
            nonlocal done
            done += 1
            progress("measuring", done, tasks)

        cpu = torch.device("cpu")
        chosen = (to_task(episodes[i], cpu) for i in range(tasks))
        try:
            spectra = measure(network, chosen, subsets, tick)
        except (RuntimeError, ValueError) as error:
            raise FirststepError(f"{model} cannot take these images: {error}") from error
    table = Table(["subset", "condition number", "conditioning loss", "rank", "of"])
    for s in spectra:
        table.add_row(
            s.subset,
            f"{s.condition_number:.4g}",
            f"{s.loss:.4f}",
            f"{s.rank:.1f}",
            str(s.eigenvalues.shape[1]),
        )
    save_figure(spectrum_figure(spectra), plot)
    screen = console()
    screen.print(
        f"{model} on {dataset.name} {split}, {episodes.ways}-way {shots}-shot, {tasks} tasks", markup=False
    )
    print_wide(table)
    screen.print(f"written: {plot}")


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
