"""``firststep parameters``: count the parameters that each method learns with each backbone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import tyro

from firststep.cli.names import any_of, backbone_names
from firststep.errors import FirststepError
from firststep.training import TrainConfig

BACKBONES_HELP = f"{any_of(backbone_names())}; all of them if left out."
PAPER_WAYS = 5
PAPER_IMAGE_SIZE = 84


def parameters(
    *,
    backbone: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME ...", help=BACKBONES_HELP)] = (),
    filters: Annotated[tuple[int, ...], tyro.conf.arg(metavar="INT ...")] = (32, 64, 128),
    ways: Annotated[int, tyro.conf.arg(metavar="INT")] = PAPER_WAYS,
    image_size: Annotated[int | None, tyro.conf.arg(metavar="PIXELS")] = None,
    steps: Annotated[int, tyro.conf.arg(metavar="INT")] = 5,
    head: Literal["per-class", "shared", "zero", "prototypes"] = "per-class",
) -> None:
    """Count the parameters of every method and backbone, with the paper's counts beside them.

    Args:
        filters: Widths of the Conv backbones.
        ways: Number of classes.
        image_size: Side of the images; if left out 84 px for Conv, 224 for ResNet and
            EfficientNet-Lite0, 260 for EfficientNet-Lite2.
        steps: Number of inner steps, for each of which maml++ has parameters.
        head: Initial classifier; a shared row, or a zero one, has fewer parameters.
    """
    from firststep.backbones import BACKBONES
    from firststep.cli.terminal import console, print_wide
    from firststep.utils import MISSING, Table
    from firststep.utils.extras import MissingExtra

    table = Table(
        ["backbone", "method", "backbone's", "added", "total", "paper's"],
        title=f"parameters, {ways}-way, RGB",
        left_aligned=2,
    )
    try:
        for name in backbone or BACKBONES:
            has_filters = name in BACKBONES and BACKBONES[name].has_filters
            for width in filters if has_filters else (None,):
                try:
                    for row in _rows(name, width, ways, image_size, steps, head):
                        table.add_row(*row)
                except MissingExtra as error:
                    if backbone:
                        raise
                    table.add_row(name, str(error), "", "", "", "")
                table.add_section()
    except ValueError as error:
        raise FirststepError(str(error)) from None
    print_wide(table)
    console().print(f"{MISSING}: the method is not defined for this backbone")


def _rows(
    backbone: str, width: int | None, ways: int, image_size: int | None, steps: int, head: str
) -> Iterator[tuple[str, ...]]:
    """Return the lines of one backbone; the paper's own method is MAML, as the loss adds no parameters."""
    from firststep.backbones import BACKBONES, build_backbone
    from firststep.methods import METHODS, build_method, count_parameters
    from firststep.network import HEADS
    from firststep.paper import published

    size = BACKBONES[backbone].image_size if image_size is None and backbone in BACKBONES else image_size
    printed = {
        row.method: f"{row.total_parameters:,}"
        for row in published("preconditioners").itertuples()
        if head == "per-class"
        and (row.backbone, row.filters, PAPER_WAYS, PAPER_IMAGE_SIZE) == (backbone, width, ways, size)
    }
    label = backbone if width is None else f"{backbone}-{width}"
    names = [(name, name, head) for name in METHODS]
    names.insert(1, ("conditioned", "maml", head))
    if head == "per-class":  # maml appears once per head
        names[2:2] = [
            (TrainConfig(head=other).method_label, "maml", other) for other in HEADS if other != head
        ]
    for shown, name, start in names:
        module = build_backbone(backbone, ways=ways, image_size=size, filters=width)
        method = build_method(name, steps=steps)
        try:
            counts = count_parameters(method, module, start)
        except ValueError:
            yield label, shown, "", "–", "", ""
        else:
            numbers = (counts.backbone, counts.added, counts.total)
            yield label, shown, *(f"{number:,}" for number in numbers), printed.get(shown, "")
        label = ""
