"""The memory that a forward pass saves, and the memory format of images that it accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from firststep.conditioning import counting_saved
from firststep.network.functional_module import FunctionalModule
from firststep.task import Inputs, map_inputs, to_channels_last


class Footprint(NamedTuple):
    """The memory and the memory format of a forward pass."""

    bytes: int
    """Bytes saved for a backward pass."""
    channels_last: bool
    """Whether the network accepts images in channels-last format; a network that calls ``view`` may not."""

    def arranged(self, inputs: Inputs) -> Inputs:
        """Return the inputs in the memory format that is fastest on a CPU."""
        return map_inputs(to_channels_last, inputs) if self.channels_last else inputs


def footprint(model: FunctionalModule, params: Mapping[str, Tensor], inputs: Inputs) -> Footprint:
    """Measure the footprint in one or two forward passes; leave the global generator untouched."""
    theta = {name: value.detach().requires_grad_() for name, value in params.items()}
    model.observe(params, inputs)
    with torch.enable_grad(), model.one_task(0):  # fixed seed; leaves the global generator untouched
        for last in (True, False):
            given = map_inputs(to_channels_last, inputs) if last else inputs
            try:
                with counting_saved() as saved:
                    model(theta, given)
            except RuntimeError:
                if not last:
                    raise
            else:
                return Footprint(saved.bytes, last)
    raise AssertionError("one of the two formats was accepted or raised")
