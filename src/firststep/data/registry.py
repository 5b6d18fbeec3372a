"""What there is to know about each dataset: what it is, where it comes from, how it is read."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from firststep.data.layouts import cifar, cub, folder, mini_imagenet, omniglot, tiered_imagenet
from firststep.data.layouts.layout import Layout
from firststep.errors import FirststepError


@dataclass(frozen=True, kw_only=True)
class File:
    """A file as its authors publish it."""

    name: str
    md5: str
    url: str | None = None
    """an official address that gives the file itself, where there is one"""


@dataclass(frozen=True, kw_only=True)
class Entry:
    name: str
    about: str
    splits: str
    """classes of train / val / test, in words"""
    home: str
    """where it is officially obtained"""
    licence: str
    image_size: int
    """the usual size, used when none is asked for"""
    channels: int = 3
    ink: bool = False
    files: tuple[File, ...] = ()
    layouts: tuple[Layout, ...] = ()


_CIFAR_100 = File(
    name="cifar-100-python.tar.gz",
    md5="eb9058c3a382ffc7106e4002c42a8d85",
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
)
_OMNIGLOT = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/"

ENTRIES: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            name="glyphs",
            about="characters of 13 scripts drawn from matplotlib's fonts, 40 a class; needs no files",
            splits="456 / 81 / 145, split by script",
            home="embedded: drawn on first use",
            licence="fonts: DejaVu (free)",
            image_size=32,
            channels=1,
            ink=True,
        ),
        Entry(
            name="omniglot",
            about="handwritten characters of 50 alphabets, 20 a class",
            splits="1028 / 172 / 423 (Vinyals)",
            home="https://github.com/brendenlake/omniglot",
            licence="MIT",
            image_size=28,
            channels=1,
            ink=True,
            files=(
                File(
                    name="images_background.zip",
                    md5="68d2efa1b9178cc56df9314c21c6e718",
                    url=_OMNIGLOT + "images_background.zip",
                ),
                File(
                    name="images_evaluation.zip",
                    md5="6b91aef0f799c5bb55b94e3f2daec811",
                    url=_OMNIGLOT + "images_evaluation.zip",
                ),
            ),
            layouts=omniglot.LAYOUTS,
        ),
        Entry(
            name="cifar-fs",
            about="CIFAR-100, 600 a class, split at random (Bertinetto et al. 2019)",
            splits="64 / 16 / 20",
            home="https://www.cs.toronto.edu/~kriz/cifar.html",
            licence="not stated; research use",
            image_size=32,
            files=(_CIFAR_100,),
            layouts=cifar.layouts("cifar-fs", "CIFAR_FS"),
        ),
        Entry(
            name="fc100",
            about="CIFAR-100, 600 a class, split by superclass (Oreshkin et al. 2018)",
            splits="60 / 20 / 20 in 12 / 4 / 4 superclasses",
            home="https://www.cs.toronto.edu/~kriz/cifar.html",
            licence="not stated; research use",
            image_size=32,
            files=(_CIFAR_100,),
            layouts=cifar.layouts("fc100", "FC100"),
        ),
        Entry(
            name="mini-imagenet",
            about="100 ImageNet classes, 600 a class (split of Ravi and Larochelle 2017)",
            splits="64 / 16 / 20",
            home="https://image-net.org (ask for ILSVRC 2012), or a copy that others made from it",
            licence="ImageNet: non-commercial research",
            image_size=84,
            files=(File(name="mini-imagenet.tar.gz", md5="b38f1eb4251fb9459ecc8e7febf9b2eb"),),
            layouts=mini_imagenet.LAYOUTS,
        ),
        Entry(
            name="tiered-imagenet",
            about="608 ImageNet classes, 779,165 images, split by superclass (Ren et al. 2018)",
            splits="351 / 97 / 160 in 20 / 6 / 8 superclasses",
            home="https://github.com/renmengye/few-shot-ssl-public, or ILSVRC 2012 of https://image-net.org",
            licence="ImageNet: non-commercial research",
            image_size=84,
            files=(File(name="tiered-imagenet.tar", md5="e07e811b9f29362d159a9edd0d838c62"),),
            layouts=tiered_imagenet.LAYOUTS,
        ),
        Entry(
            name="cub",
            about="Caltech-UCSD Birds 200-2011, 41 to 60 a class (split of Chen et al. 2019)",
            splits="100 / 50 / 50",
            home="https://www.vision.caltech.edu/datasets/cub_200_2011",
            licence="non-commercial research",
            image_size=84,
            files=(File(name="CUB_200_2011.tgz", md5="97eceeb196236b17998738112f37df78"),),
            layouts=cub.LAYOUTS,
        ),
        Entry(
            name="folder",
            about="your own pictures: one folder a class",
            splits="yours, or 64 / 16 / 20 % of the classes drawn from a seed",
            home="your disk",
            licence="yours",
            image_size=84,
            layouts=folder.LAYOUTS,
        ),
    )
}


def entry(name: str) -> Entry:
    if name not in ENTRIES:
        near = difflib.get_close_matches(name, ENTRIES, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise FirststepError(f"unknown dataset {name!r}{hint} There are: {', '.join(ENTRIES)}")
    return ENTRIES[name]
