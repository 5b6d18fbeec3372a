"""A network of the user's own, named on the command line as ``package.module:NAME``."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from firststep.backbones import code_of_the_user, make_network
from firststep.network import FunctionalModule


def import_network(where: str) -> nn.Module:
    """``package.module:NAME``: an ``nn.Module``, or a function without arguments that makes one."""
    return make_network(where, {})


def check_forward(network: FunctionalModule, images: Tensor, where: str) -> None:
    """Call it once on its own: what fails later is not in its ``forward``."""
    with torch.no_grad(), code_of_the_user(f"{where} failed on images of shape {list(images.shape)}"):
        network(network.params(), images)
