"""The datasets that firststep knows; importing this registers them."""

from __future__ import annotations

from firststep.data import official_splits
from firststep.data.dataset_info import DatasetInfo, GeneratedImages, PublishedFile, register_dataset
from firststep.data.layouts import cifar, cub, folder, mini_imagenet, omniglot, tiered_imagenet
from firststep.data.source import Source
from firststep.utils.extras import extra


def _glyph_source(seed: int) -> Source:
    with extra("cli", "glyphs"):
        from firststep.data.glyphs import glyph_source  # with matplotlib's fonts and fontTools

    return glyph_source(seed)


def _glyph_identity(seed: int) -> list[str]:
    with extra("cli", "glyphs"):
        from firststep.data.glyphs import glyph_identity

    return glyph_identity(seed)


_CIFAR_100 = PublishedFile(
    name="cifar-100-python.tar.gz",
    md5="eb9058c3a382ffc7106e4002c42a8d85",
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
)
_OMNIGLOT = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python/"

for _info in (
    DatasetInfo(
        name="glyphs",
        about="characters of 13 scripts drawn from matplotlib's fonts, 40 a class; needs no files",
        splits="456 / 81 / 145, split by script",
        home="embedded: drawn on first use",
        licence="fonts: DejaVu (free)",
        image_size=32,
        channels=1,
        ink=True,
        generated=GeneratedImages(source=_glyph_source, identity=_glyph_identity),
        options=("seed",),
    ),
    DatasetInfo(
        name="omniglot",
        about="handwritten characters of 50 alphabets, 20 a class",
        splits="1028 / 172 / 423 (Vinyals)",
        home="https://github.com/brendenlake/omniglot",
        licence="MIT",
        image_size=28,
        channels=1,
        ink=True,
        files=(
            PublishedFile(
                name="images_background.zip",
                md5="68d2efa1b9178cc56df9314c21c6e718",
                url=_OMNIGLOT + "images_background.zip",
            ),
            PublishedFile(
                name="images_evaluation.zip",
                md5="6b91aef0f799c5bb55b94e3f2daec811",
                url=_OMNIGLOT + "images_evaluation.zip",
            ),
        ),
        layouts=omniglot.LAYOUTS,
        official=official_splits.omniglot,
        options=("rotations",),
    ),
    DatasetInfo(
        name="cifar-fs",
        about="CIFAR-100, 600 a class, split at random (Bertinetto et al. 2019)",
        splits="64 / 16 / 20",
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
        licence="not stated; research use",
        image_size=32,
        files=(_CIFAR_100,),
        layouts=cifar.layouts(official_splits.cifar_fs, "CIFAR_FS"),
        official=official_splits.cifar_fs,
    ),
    DatasetInfo(
        name="fc100",
        about="CIFAR-100, 600 a class, split by superclass (Oreshkin et al. 2018)",
        splits="60 / 20 / 20 in 12 / 4 / 4 superclasses",
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
        licence="not stated; research use",
        image_size=32,
        files=(_CIFAR_100,),
        layouts=cifar.layouts(official_splits.fc100, "FC100"),
        official=official_splits.fc100,
    ),
    DatasetInfo(
        name="mini-imagenet",
        about="100 ImageNet classes, 600 a class (split of Ravi and Larochelle 2017)",
        splits="64 / 16 / 20",
        home="https://image-net.org (ask for ILSVRC 2012), or a copy that others made from it",
        licence="ImageNet: non-commercial research",
        image_size=84,
        files=(PublishedFile(name="mini-imagenet.tar.gz", md5="b38f1eb4251fb9459ecc8e7febf9b2eb"),),
        layouts=mini_imagenet.LAYOUTS,
        official=official_splits.mini_imagenet,
    ),
    DatasetInfo(
        name="tiered-imagenet",
        about="608 ImageNet classes, 779,165 images, split by superclass (Ren et al. 2018)",
        splits="351 / 97 / 160 in 20 / 6 / 8 superclasses",
        home="https://github.com/renmengye/few-shot-ssl-public, or ILSVRC 2012 of https://image-net.org",
        licence="ImageNet: non-commercial research",
        image_size=84,
        files=(PublishedFile(name="tiered-imagenet.tar", md5="e07e811b9f29362d159a9edd0d838c62"),),
        layouts=tiered_imagenet.LAYOUTS,
        official=official_splits.tiered_imagenet,
    ),
    DatasetInfo(
        name="cub",
        about="Caltech-UCSD Birds 200-2011, 41 to 60 a class (split of Chen et al. 2019)",
        splits="100 / 50 / 50",
        home="https://www.vision.caltech.edu/datasets/cub_200_2011",
        licence="non-commercial research",
        image_size=84,
        files=(PublishedFile(name="CUB_200_2011.tgz", md5="97eceeb196236b17998738112f37df78"),),
        layouts=cub.LAYOUTS,
        official=official_splits.cub,
    ),
    DatasetInfo(
        name="folder",
        about="your own images: one folder a class",
        splits="yours, or 64 / 16 / 20 % of the classes drawn from a seed",
        home="your disk",
        licence="yours",
        image_size=84,
        layouts=folder.LAYOUTS,
        options=("seed", "channels"),
    ),
):
    register_dataset(_info)
