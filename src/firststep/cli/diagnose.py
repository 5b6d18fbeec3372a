"""``firststep diagnose``: measure how well conditioned a model is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import tyro

from firststep.cli.progress import progress_bar
from firststep.cli.run_argument import A_RUN
from firststep.cli.terminal import console, print_wide
from firststep.cli.user_network import check_forward, import_network
from firststep.data import Dataset, Episodes, open_dataset, tasks_of
from firststep.errors import FirststepError
from firststep.evaluation import (
    METRICS,
    Spectrum,
    measure_first_step,
    measure_tasks,
    spectrum_figure,
    to_task,
)
from firststep.evaluation import diagnose as measure
from firststep.evaluation._internal import MAIN, SUBSETS, TEST_SEED, UNSTABLE
from firststep.losses import Residuals
from firststep.meta_learner import MetaLearner
from firststep.network import FunctionalModule
from firststep.plotting import FIGURE_ENDINGS, save_figure
from firststep.rules import maml
from firststep.training import TrainConfig, TrainedModel, data_for, load_trained
from firststep.utils import Table, check_file_writable, make_folder

DEFAULT_WAYS = 5
DEFAULT_RATE = 0.01
MOST_QUERIES = 10
"""Number of query images per class on which the first step is tested."""


def diagnose(
    model: Annotated[
        str,
        tyro.conf.Positional,
        tyro.conf.arg(
            metavar="RUN|MODULE",
            help=f"{A_RUN}, or your own module as package.module:NAME, where NAME is an "
            "nn.Module or a function that makes one.",
        ),
    ],
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
    rate: float | None = None,
    plot: Annotated[Path, tyro.conf.arg(metavar="FILE.png")] = Path("spectrum.png"),
) -> None:
    """Show the eigenvalue spectrum and condition number on test tasks, and what is wrong with the first step.

    Args:
        data: Dataset; the run's own if left out, glyphs for a module.
        data_path: Location of the dataset.
        image_size: For a module: side of its images.
        classifier: For a module: attribute path of its final linear layer, if it is not found.
        subsets: Parameter subsets: cls, emb, ebn, body, all, or unions such as cls+emb; all of the network's
        if
            left out. With a shared or zero head only those with cls, because nothing else has a gradient
            before the first step.
        ways: Number of classes; if left out as trained, and 5 for a module.
        shots: Number of support images per class.
        tasks: Number of tasks.
        split: Split: train, val or test.
        rate: For a module: inner learning rate of the first step; 0.01 if left out.
        plot: File for the figure of the spectrum (.png, .svg or .pdf).
    """
    if tasks < 1:
        raise FirststepError(f"`tasks` must be at least 1, not {tasks}")
    if not subsets:
        raise FirststepError(f"`subsets` needs at least one of {', '.join(SUBSETS)}")
    check_file_writable(plot, *FIGURE_ENDINGS)
    with progress_bar() as progress:
        if ":" in model and not model.startswith("builtin:"):
            module = import_network(model)
            dataset: Dataset = open_dataset(
                data or "glyphs", data_path, image_size=image_size, progress=progress
            )
            rate = DEFAULT_RATE if rate is None else rate
            try:
                meta = MetaLearner(module, maml(rate), classifier=classifier)
            except ValueError as error:
                raise FirststepError(f"{error}; name it with `classifier`") from None
        else:
            if classifier is not None or image_size is not None or rate is not None:
                raise FirststepError("`classifier`, `image_size`, `rate` are for modules: a run has its own")
            trained = load_trained(model, device="cpu")
            if trained.config.kind != "classes" or trained.config.tasks is not None:
                if data is not None or data_path is not None or ways is not None:
                    raise FirststepError("`data`, `data_path`, `ways` are for models of classes")
                _diagnose_tasks(trained, model, subsets, shots, tasks, split, plot)
                return
            ways = trained.meta.num_classes if ways is None else ways
            try:
                meta = trained.meta.for_classes(ways)
            except ValueError as error:
                raise FirststepError(f"`ways={ways}`: {error}") from None
            rate = _rate(trained.config)
            if meta.functional.head != "per-class" and subsets == SUBSETS:
                subsets = ("cls", "all")  # the others have no gradient before the first step
            dataset = data_for(trained, data, data_path, progress)
        network = meta.functional
        images = dataset.split(split)
        episodes = Episodes(images, ways=ways or DEFAULT_WAYS, shots=shots, queries=1, seed=TEST_SEED)
        done = 0

        def tick() -> None:
            nonlocal done
            done += 1
            progress("measuring", done, tasks)

        cpu = torch.device("cpu")
        check_forward(network, torch.from_numpy(episodes[0].support_x), model)
        if subsets == SUBSETS:  # default: leave out what the network lacks
            subsets = tuple(subset for subset in subsets if _has(network, subset))
        chosen = (to_task(episodes[i], cpu) for i in range(tasks))
        try:
            spectra = measure(network, chosen, subsets, tick)
            queries = min(MOST_QUERIES, min(images.counts) - shots)
            stepping = Episodes(images, ways=episodes.ways, shots=shots, queries=queries, seed=TEST_SEED)
            step = measure_first_step(meta, (to_task(stepping[i], cpu) for i in range(tasks)), rate)
        except (RuntimeError, ValueError) as error:
            raise FirststepError(f"{model} cannot take these images: {error}") from error
    screen = console()
    shape = f"{episodes.ways}-way {shots}-shot"
    _show(spectra, f"{model} on {dataset.name} {split}, {shape}, {tasks} tasks", plot)
    screen.print(
        f"first step: support loss {step.support_loss[0]:.2f} to {step.support_loss[1]:.2f}, accuracy "
        f"{100 * step.accuracy[0]:.1f} to {100 * step.accuracy[1]:.1f} %, largest class "
        f"{100 * step.largest_share[0]:.0f} to {100 * step.largest_share[1]:.0f} % of the queries"
    )
    for cause in step.causes() or ["nothing keeps the first step from being a good one"]:
        screen.print(cause)
    screen.print(f"written: {plot}")


def _diagnose_tasks(
    trained: TrainedModel,
    model: str,
    subsets: tuple[str, ...],
    shots: int,
    number: int,
    split: str,
    plot: Path,
) -> None:
    """Show the spectra of a model that is not a classifier, and its losses around the first step."""
    meta, config = trained.meta, trained.config
    source = data_for(trained)
    tasks = tasks_of(
        source, split, ways=config.ways, shots=shots, queries=max(shots, MOST_QUERIES), seed=TEST_SEED
    )
    chosen = [to_task(tasks[i], torch.device("cpu")) for i in range(number)]
    meta.functional.observe(meta.functional.params(), chosen[0].support_x)
    if subsets == SUBSETS:
        subsets = tuple(subset for subset in subsets if _has(meta.functional, subset))
    residuals = Residuals(kind=config.residuals, rows=config.rows)  # type: ignore[arg-type]
    spectra = measure(meta.functional, chosen, subsets, loss=meta.loss, residuals=residuals)
    main = MAIN[meta.kind]
    found = measure_tasks(meta, chosen, steps=(0, 1), subset=subsets[0], metrics=("support_loss", main))
    _show(spectra, f"{model} on {source.name} {split}, {shots}-shot, {number} tasks", plot)
    (before, after), (first, second) = found.mean("support_loss"), found.mean(main)
    screen = console()
    screen.print(
        f"first step: support loss {before:.3g} to {after:.3g}, {METRICS[main].title} {first:.3g} to "
        f"{second:.3g}"
    )
    if config.method in ("maml", "fomaml") and "all" in subsets:
        # The mean loss is the sum of squared residuals, so its Gauss-Newton matrix is 2 JᵀJ.
        largest = next(s.eigenvalues[:, 0].mean() for s in spectra if s.subset == "all")
        curvature = 2 * (_rate(config) or 0.0) * largest
        fate = (
            "more than 2: the step overshoots" if curvature > UNSTABLE else "below 2: it does not overshoot"
        )
        screen.print(f"α λ_max of all parameters is {curvature:.2g}, {fate}")
    screen.print(f"written: {plot}")


def _show(spectra: list[Spectrum], title: str, plot: Path) -> None:
    """Print the table of spectra, and write their figure."""
    table = Table(["subset", "condition number", "conditioning loss", "rank", "of"])
    for s in spectra:
        table.add_row(
            s.subset,
            f"{s.condition_number:.4g}",
            f"{s.loss:.4f}",
            f"{s.rank:.1f}",
            str(s.eigenvalues.shape[1]),
        )
    make_folder(plot.parent)
    save_figure(spectrum_figure(spectra), plot)
    console().print(title, markup=False)
    print_wide(table)


def _has(network: FunctionalModule, subset: str) -> bool:
    """Return whether the network has such parameters: many lack a layer or a norm before the classifier."""
    try:
        return bool(network.subset(subset))
    except ValueError:
        return False


def _rate(config: TrainConfig) -> float | None:
    """Return the inner rate of a run whose classifier takes plain gradient steps; otherwise None."""
    if config.method not in ("maml", "fomaml", "anil"):
        return None
    return DEFAULT_RATE if config.rate is None else config.rate
