"""Load a user's network, named on the command line as ``package.module:NAME``."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from firststep.backbones import code_of_the_user, make_network
from firststep.network import FunctionalModule


def import_network(where: str) -> nn.Module:
    """Import ``package.module:NAME``: an ``nn.Module``, or a function without arguments that returns one."""
    return make_network(where, {})


def check_forward(network: FunctionalModule, images: Tensor, where: str) -> None:
    """Run one forward pass, so that later errors cannot come from ``forward``."""
    with torch.no_grad(), code_of_the_user(f"{where} failed on images of shape {list(images.shape)}"):
        network(network.params(), images)
