"""What a forward pass needs: its memory, and the order of images that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from firststep.conditioning import counting_saved
from firststep.network.functional_module import FunctionalModule
from firststep.task import Inputs, map_inputs, to_channels_last


class Footprint(NamedTuple):
    bytes: int
    """What a backward pass would need of it."""
    channels_last: bool
    """Whether the network takes images with their channels last in memory; not all do (``view`` does not)."""

    def arranged(self, inputs: Inputs) -> Inputs:
        """The same inputs in the order that is the fastest on a CPU."""
        return map_inputs(to_channels_last, inputs) if self.channels_last else inputs


def footprint(model: FunctionalModule, params: Mapping[str, Tensor], inputs: Inputs) -> Footprint:
    """By one forward pass, or two, which draw no random numbers."""
    theta = {name: value.detach().requires_grad_() for name, value in params.items()}
    model.observe(params, inputs)
    with torch.enable_grad(), model.one_task(0):  # a number of ours: it draws none
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
    raise AssertionError("one of the two orders was taken or raised")
