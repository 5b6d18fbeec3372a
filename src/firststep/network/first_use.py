"""One forward pass at a network's first use in each mode: find its layers, refuse randomness."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from firststep.network.find_layers import find_embedding, norm_after
from firststep.network.interface import check_inputs
from firststep.network.observation import random_layer, recording_order
from firststep.network.randomness import generator_states, preserved, same_states
from firststep.network.second_derivatives import twice_differentiable
from firststep.network.subsets import Layers
from firststep.task import Inputs

_DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
_WITH_DROPOUT = (nn.MultiheadAttention, nn.RNN, nn.LSTM, nn.GRU)
_REMEDY = (
    "so a step could not be computed twice: put it in eval() mode, set its rate to 0, or use "
    "`randomness='same'`"
)


class FirstUse:
    """Find the layers that subsets are named after and the operations to replace; refuse randomness.

    Args:
        module: the network.
        classifier: path of its last linear layer; None if it has none.
        embedding: path of the layer before it; None to find it.
        embedding_norm: path of that layer's normalisation; None to find it.
        allow_random: accept a network that draws random numbers.
    """

    def __init__(
        self,
        module: nn.Module,
        classifier: str | None,
        embedding: str | None,
        embedding_norm: str | None,
        allow_random: bool,
    ) -> None:
        self._module = module
        self._given = Layers(classifier, embedding, embedding_norm)
        self._allow_random = allow_random
        self._modes: set[tuple[bool, ...]] = set()
        self.layers = self._find_layers(list(dict(module.named_modules())))
        """Found in order of registration until the network has run, then in order of execution."""
        self.replaces = True
        """Whether the network may use operations that :func:`twice_differentiable` must replace."""

    def __call__(self, run: Callable[[], object], inputs: Inputs, device: torch.device) -> None:
        """Run the network once unless it has already run in this mode; refuse it if it is random.

        Args:
            run: a forward pass.
            inputs: inputs of that pass.
            device: device of the parameters.
        """
        if not self._allow_random:
            self.check_dropout()
        modes = tuple(part.training for part in self._module.modules())
        if modes in self._modes:
            return
        check_inputs(self._module, inputs)
        modules = dict(self._module.named_modules())
        with torch.no_grad(), preserved(device), twice_differentiable() as replaced:
            before = generator_states(device)
            with recording_order(modules) as order:
                run()
            if not self._allow_random and not same_states(before, generator_states(device)):
                where = random_layer(modules, run, device)
                raise ValueError(f"{where} draws random numbers, {_REMEDY}")
        self.layers = self._find_layers(order)
        self.replaces = replaced() or (self.replaces and bool(self._modes))
        self._modes.add(modes)

    def check_dropout(self) -> None:
        """Refuse dropout in training mode: a step that is computed twice must give the same values."""
        for name, part in self._module.named_modules():
            rate = part.p if isinstance(part, _DROPOUT) else 0.0
            if isinstance(part, _WITH_DROPOUT):
                rate = part.dropout
            if part.training and rate > 0:
                raise ValueError(f"{name!r} drops units at random, {_REMEDY}")

    def _find_layers(self, order: list[str]) -> Layers:
        modules = dict(self._module.named_modules())
        classifier, embedding, embedding_norm = self._given
        if embedding is None and classifier is not None:
            embedding = find_embedding(modules, order, classifier)
        if embedding_norm is None:
            # A module that is never called by itself is found only in order of registration.
            embedding_norm = norm_after(modules, order if embedding in order else list(modules), embedding)
        return Layers(classifier, embedding, embedding_norm)
