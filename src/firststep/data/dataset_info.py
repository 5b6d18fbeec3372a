"""What there is to know about each dataset: what it is, where it comes from, how it is read.

``DATASETS`` holds them by name; ``register_dataset`` adds one from outside the package.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from firststep.data.layouts.layout import Layout
from firststep.data.official_splits import OfficialSplits
from firststep.data.source import Source
from firststep.errors import FirststepError, unknown
from firststep.utils.registry import Registry

OPTIONS = ("seed", "channels", "rotations")
"""Options of ``open_dataset`` that only some datasets have."""


@dataclass(frozen=True, kw_only=True)
class PublishedFile:
    """A file as its authors publish it.

    Examples:
        >>> from firststep.data import DATASETS
        >>> [file.name for file in DATASETS["omniglot"].files]
        ['images_background.zip', 'images_evaluation.zip']
    """

    name: str
    md5: str
    url: str | None = None
    """an official address that gives the file itself, where there is one"""


@dataclass(frozen=True, kw_only=True)
class GeneratedImages:
    """Images that are computed from a seed instead of read from files.

    Examples:
        >>> from firststep.data import DATASETS
        >>> type(DATASETS["glyphs"].generated).__name__
        'GeneratedImages'
    """

    source: Callable[[int], Source]
    """the images of a seed"""
    identity: Callable[[int], list[str]]
    """everything that the pixels of a seed depend on: part of the cache's name"""


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """A dataset that ``open_dataset`` can open: read from disk in one of its layouts, or generated.

    Examples:
        >>> from firststep.data import DATASETS
        >>> DATASETS["cub"].image_size, [layout.what for layout in DATASETS["cub"].layouts]
        (84, ['CUB_200_2011/images/001.Name/*.jpg (or its .tgz)', '{train,test}/001.Name/*.jpg'])
    """

    name: str
    """letters, digits, dots, dashes and underscores: it is part of file names"""
    about: str
    """one line"""
    splits: str = "as on disk"
    """classes of train / val / test, in words"""
    home: str = "your disk"
    """where it is officially obtained"""
    licence: str = "not stated"
    image_size: int
    """the usual size, used when none is asked for"""
    channels: int = 3
    ink: bool = False
    """drawings, see ``Preprocessing``"""
    layouts: tuple[Layout, ...] = ()
    """the forms in which it may be on disk, tried in this order"""
    generated: GeneratedImages | None = None
    """instead of layouts"""
    files: tuple[PublishedFile, ...] = ()
    """the archives in which it is published"""
    official: Callable[[], OfficialSplits] | None = None
    """the published classes and counts, which the data is compared with"""
    options: tuple[str, ...] = ()
    """which of ``seed``, ``channels`` and ``rotations`` ``open_dataset`` accepts for it"""
    version: int = 1
    """raise it when a layout reads the same files differently: caches are then made again"""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self.name):
            raise FirststepError(
                f"a dataset's name has letters, digits, dots, dashes and underscores only, not {self.name!r}"
            )
        if bool(self.layouts) == (self.generated is not None):
            raise FirststepError(f"{self.name} needs either layouts or generated images")
        for option in self.options:
            if option not in OPTIONS:
                raise unknown("dataset option", option, OPTIONS)


DATASETS: Registry[DatasetInfo] = Registry("dataset")
"""Datasets that ``open_dataset`` knows, by name.

Examples:
    >>> from firststep.data import DATASETS
    >>> list(DATASETS)
    ['glyphs', 'omniglot', 'cifar-fs', 'fc100', 'mini-imagenet', 'tiered-imagenet', 'cub', 'folder']
"""


def register_dataset(info: DatasetInfo) -> DatasetInfo:
    """Make ``open_dataset(info.name, ...)`` work; ``DATASETS.unregister(info.name)`` undoes it.

    Examples:
        >>> from firststep.data import DATASETS, DatasetInfo, FileImages, Layout, Source, register_dataset
        >>> def read(root):
        ...     folders = [folder for folder in sorted(root.iterdir()) if folder.is_dir()]
        ...     classes = {folder.name: FileImages(sorted(folder.glob("*.tga"))) for folder in folders}
        ...     return Source("*/*.tga", {"all": classes})
        >>> layout = Layout("*/*.tga", lambda root: sorted(root.glob("*/*.tga")), read)
        >>> info = DatasetInfo(name="sprites", about="small figures", image_size=16, layouts=(layout,))
        >>> _ = register_dataset(info)
        >>> DATASETS.unregister("sprites")
    """
    return DATASETS.register(info.name, info)


def get_dataset_info(name: str) -> DatasetInfo:
    """What is known about a dataset; ``FirststepError`` if there is none of that name.

    Examples:
        >>> from firststep.data import get_dataset_info
        >>> get_dataset_info("mini-imagenet").splits
        '64 / 16 / 20'
    """
    if name not in DATASETS:
        raise unknown("dataset", name, DATASETS)
    return DATASETS[name]
