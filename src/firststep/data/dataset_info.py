"""The description of a dataset: what it is, where it comes from, how it is read.

``DATASETS`` maps names to descriptions, and ``register_dataset`` adds one, also from outside the package.
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
"""Options of ``open_dataset`` that only some datasets accept."""


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
    """official direct address, if there is one"""


@dataclass(frozen=True, kw_only=True)
class GeneratedImages:
    """Images that are computed from a seed instead of read from files.

    Examples:
        >>> from firststep.data import DATASETS
        >>> type(DATASETS["glyphs"].generated).__name__
        'GeneratedImages'
    """

    source: Callable[[int], Source]
    """seed → images"""
    identity: Callable[[int], list[str]]
    """seed → everything that the pixels depend on, part of the name of the cache"""


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """A dataset that ``open_dataset`` can open: it is read from disk in one of its layouts, or generated.

    Examples:
        >>> from firststep.data import DATASETS
        >>> DATASETS["cub"].image_size, [layout.what for layout in DATASETS["cub"].layouts]
        (84, ['CUB_200_2011/images/001.Name/*.jpg (or its .tgz)', '{train,test}/001.Name/*.jpg'])
    """

    name: str
    """letters, digits, dots, dashes and underscores, because it becomes part of file names"""
    about: str
    """description in one line"""
    splits: str = "as on disk"
    """number of classes of train / val / test, in words"""
    home: str = "your disk"
    """where to get it officially"""
    licence: str = "not stated"
    image_size: int
    """default image size in pixels"""
    channels: int = 3
    ink: bool = False
    """whether the images are drawings, see ``Preprocessing``"""
    layouts: tuple[Layout, ...] = ()
    """layouts on disk, tried in this order"""
    generated: GeneratedImages | None = None
    """for generated images, instead of layouts"""
    files: tuple[PublishedFile, ...] = ()
    """published archives"""
    official: Callable[[], OfficialSplits] | None = None
    """published classes and counts, with which the data is compared"""
    options: tuple[str, ...] = ()
    """those of ``seed``, ``channels`` and ``rotations`` that ``open_dataset`` accepts for it"""
    version: int = 1
    """version of the layouts; raise it when one reads the same files differently, to renew the caches"""

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
"""Descriptions of all datasets by name.

Examples:
    >>> from firststep.data import DATASETS
    >>> list(DATASETS)
    ['cifar-fs', 'fc100', 'cub', 'folder', 'glyphs', 'mini-imagenet', 'omniglot', 'tiered-imagenet']
"""


def register_dataset(info: DatasetInfo) -> DatasetInfo:
    """Add a dataset for ``open_dataset(info.name, ...)``; ``DATASETS.unregister(info.name)`` removes it.

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
    """Return the description of a dataset; raise ``FirststepError`` if the name is unknown.

    Examples:
        >>> from firststep.data import get_dataset_info
        >>> get_dataset_info("mini-imagenet").splits
        '64 / 16 / 20'
    """
    return DATASETS[name]
