"""Differences from the paper's protocol, by the names of the settings that they change."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from firststep.errors import FirststepError, unknown
from firststep.training import TrainConfig


@dataclass(frozen=True, kw_only=True)
class BeyondTraining:
    """Changes that are not settings of a training run."""

    rate_times_features: float | None = None
    """Inner rate α of every run times the number of features that its classifier sees, instead of `rate`."""
    episodes: int | None = None
    """Maximum number of test episodes; the paper has 600."""
    longest: int | None = None
    """Leave out tests after more inner steps than this; the paper goes to 100."""
    seeds: tuple[int, ...] | None = None
    """Train every row once per seed. A seed decides the initial values and every training episode; 0."""


DECIDED = (
    *("data", "data_path", "partial", "ways", "shots", "backbone", "network", "pretrained"),
    *("method", "steps", "query_weights", "conditioning", "subset", "seed"),
)
"""Settings of ``TrainConfig`` that an experiment's rows or the command's own flags decide."""


def _changeable() -> dict[str, Any]:
    training = typing.get_type_hints(TrainConfig)
    names = [field.name for field in dataclasses.fields(TrainConfig) if field.name not in DECIDED]
    return {name: training[name] for name in names} | typing.get_type_hints(BeyondTraining)


CHANGEABLE: dict[str, Any] = _changeable()
"""Name of a change → its type: settings of ``TrainConfig``, then those of ``BeyondTraining``."""


class Changes(Mapping[str, Any]):
    """Differences from the paper's protocol: a mapping from name to value, without what stays as it is.

    Names are the settings of :class:`firststep.training.TrainConfig` that no row of an experiment decides,
    and ``rate_times_features``, ``episodes``, ``longest`` and ``seeds``. ``filters`` is the number of
    channels where the paper has 64; other widths change in proportion.

    Examples:
        >>> from firststep.paper import Changes
        >>> Changes(updates=200, seeds=(0, 1, 2))["seeds"]
        (0, 1, 2)
        >>> Changes(updates=200).get("filters") is None
        True
    """

    def __init__(self, **changes: Any) -> None:
        for name in changes:
            if name not in CHANGEABLE:
                raise unknown("change", name, CHANGEABLE)
        # In one order, so that the same changes give the same folder name.
        self._changes = {name: changes[name] for name in CHANGEABLE if changes.get(name) is not None}
        seeds = self.get("seeds")
        if seeds is not None and (not seeds or len(set(seeds)) < len(seeds)):
            given = " ".join(map(str, seeds)) or "without a number"
            raise FirststepError(f"`seeds` {given}: give each seed once, for example 0 1 2")
        if seeds is not None and min(seeds) < 0:
            raise FirststepError(f"`seeds` must be at least 0, not {min(seeds)}")

    def __getitem__(self, name: str) -> Any:
        return self._changes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)

    def __hash__(self) -> int:
        return hash(tuple(self.items()))

    def __repr__(self) -> str:
        return f"Changes({', '.join(f'{name}={value!r}' for name, value in self.items())})"

    @property
    def training(self) -> dict[str, Any]:
        """The changed settings of a training run."""
        own = {field.name for field in dataclasses.fields(BeyondTraining)}
        return {name: value for name, value in self.items() if name not in own}


UNCHANGED = Changes()
