"""``firststep diagnose``: how well conditioned a model is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.table import Table

from firststep.cli.progress import progress_bar
from firststep.cli.terminal import console
from firststep.data import Dataset, Episodes, open_dataset
from firststep.errors import FirststepError
from firststep.evaluation.diagnosis import SUBSETS, import_module, spectrum_figure
from firststep.evaluation.diagnosis import diagnose as measure
from firststep.evaluation.figures import save_figure
from firststep.evaluation.trained import data_for, load_trained
from firststep.network import FunctionalModule, Params
from firststep.task import Task
from firststep.training.setup import TEST_SEED


def diagnose(
    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN|MODULE")],
    /,
    *,
    data: str | None = None,
    data_path: Path | None = None,
    image_size: int | None = None,
    classifier: str | None = None,
    subsets: tuple[str, ...] = SUBSETS,
    ways: int = 5,
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
        image_size: For a module: side of its pictures.
        classifier: For a module: attribute path of its final linear layer; "classifier" if left out.
        subsets: Parameter subsets: cls, emb, ebn, body, all, or unions such as cls+emb.
        ways: Classes of a task; for a run, as trained.
        shots: Support pictures of each class.
        tasks: How many tasks.
        split: train, val or test.
        plot: Where the picture of the spectrum goes (.png, .svg or .pdf).
    """
    if tasks < 1:
        raise FirststepError(f"--tasks must be at least 1, not {tasks}")
    with progress_bar() as progress:
        params: Params | None = None
        if ":" in model and not model.startswith("builtin:"):
            dataset: Dataset = open_dataset(
                data or "glyphs", data_path, image_size=image_size, progress=progress
            )
            try:
                network = FunctionalModule(import_module(model), classifier or "classifier")
            except ValueError as error:
                raise FirststepError(f"{error}; name it with --classifier") from None
        else:
            if classifier is not None or image_size is not None:
                raise FirststepError("--classifier and --image-size are for modules: a run knows its own")
            trained = load_trained(model, device="cpu")
            network, params, ways = trained.setup.model, trained.params, trained.config.ways
            dataset = data_for(trained, data, data_path, progress)
        episodes = Episodes(dataset.split(split), ways=ways, shots=shots, queries=1, seed=TEST_SEED)
        done = 0

        def tick() -> None:
            nonlocal done
            done += 1
            progress("measuring", done, tasks)

        chosen = (Task(*(torch.from_numpy(part) for part in episodes[i])) for i in range(tasks))
        try:
            spectra = measure(network, params, chosen, subsets, tick)
        except (RuntimeError, ValueError) as error:
            raise FirststepError(f"{model} cannot take these pictures: {error}") from error
    table = Table("subset", "condition number", "conditioning loss", "rank", "of")
    for column in table.columns[1:]:
        column.justify = "right"
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
    screen.print(f"[bold]{model}[/] on {dataset.name} {split}, {ways}-way {shots}-shot, {tasks} tasks")
    screen.print(table)
    screen.print(f"written: {plot}")
