"""``firststep data``: look at the files of a dataset and check that they are complete."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

from firststep.cli.names import any_of
from firststep.data import DATASETS
from firststep.errors import FirststepError

NAME = f'{any_of(DATASETS)}; or "list" to describe each of them and its source.'
_FETCHED = (name for name, info in DATASETS.items() if info.files)
DOWNLOAD = f"First fetch the official files into PATH ({any_of(_FETCHED)})."


def data(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME", help=NAME)],
    path: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[PATH]")] = None,
    /,
    *,
    size: Annotated[int | None, tyro.conf.arg(metavar="PIXELS")] = None,
    seed: Annotated[int | None, tyro.conf.arg(metavar="INT")] = None,
    channels: Annotated[Literal[1, 3] | None, tyro.conf.arg(metavar="1|3")] = None,
    rotations: bool = False,
    download: Annotated[bool, tyro.conf.arg(help=DOWNLOAD)] = False,
    skip_broken: bool = False,
    partial: bool = False,
    cache: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
    sheet: Annotated[Path | None, tyro.conf.arg(metavar="FILE.png")] = None,
    classes_sheet: Annotated[Path | None, tyro.conf.arg(metavar="FILE.png")] = None,
    split: Literal["train", "val", "test"] = "train",
    episode: Annotated[int, tyro.conf.arg(metavar="INT")] = 0,
) -> None:
    """Look at a dataset: show its files, check them, build its cache, draw a contact sheet.

    Args:
        path: Folder or archive that holds the dataset; not for glyphs.
        size: Side of the images in pixels; the dataset's usual size if left out.
        seed: glyphs: seed of the drawing. folder: seed of the split, if the folders have none.
        channels: folder: 3 for RGB (default), 1 for grey.
        rotations: omniglot: quarter turns as extra classes.
        skip_broken: Leave out images that cannot be decoded, and count them.
        partial: Accept data that differs from the official classes and counts.
        cache: Folder for the cache; beside the data or in the user's cache folder if left out.
        sheet: PNG file for the contact sheet of an episode; in the cache if left out.
        classes_sheet: PNG file for a contact sheet of classes, one per row.
        split: Split on the sheets.
        episode: Number of the episode on the sheet.
    """
    from firststep.cli import data_view

    if name == "list":
        if path is not None:
            raise FirststepError("`firststep data list` takes no path")
        data_view.print_registry()
        return
    from firststep.cli.progress import progress_bar
    from firststep.data import DatasetMismatchError, download_files, get_dataset_info, open_dataset

    if episode < 0:
        raise FirststepError(f"episodes are numbered from 0, not {episode}")
    _prepare(sheet, classes_sheet)
    try:
        with progress_bar() as progress:
            if download:
                if path is None:
                    raise FirststepError("--download needs a folder to put the files in: give it as PATH")
                download_files(get_dataset_info(name), path, progress)
            dataset = open_dataset(
                name,
                path,
                image_size=size,
                channels=channels,
                seed=seed,
                rotations=rotations,
                skip_broken=skip_broken,
                partial=partial,
                cache=cache,
                verify=True,
                progress=progress,
            )
    except DatasetMismatchError as error:
        print("\n".join(error.lines), file=sys.stderr)
        raise
    data_view.print_dataset(dataset)
    shown = dataset.split(split)
    data_view.draw_episode(shown, episode, sheet or dataset.folder / f"{split}-episode-{episode}.png")
    if classes_sheet is not None:
        data_view.draw_classes(shown, classes_sheet)


def _prepare(sheet: Path | None, classes_sheet: Path | None) -> None:
    """Check that the sheets can be written: they are drawn last, after hours of building a cache."""
    from firststep.data import require_png
    from firststep.utils import check_file_writable

    for path in (sheet, classes_sheet):
        if path is not None:
            require_png(path)
            check_file_writable(path)
    if sheet is not None and classes_sheet is not None and sheet.resolve() == classes_sheet.resolve():
        raise FirststepError(f"the two sheets need two files, not {sheet} for both")
