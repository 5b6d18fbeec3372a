"""Sweeps: the product over some fields of a configuration, written as ``field=value,value``."""

from __future__ import annotations

import dataclasses
import itertools
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from firststep.errors import FirststepError, unknown
from firststep.training.config import TrainConfig, choices

TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def parse_sweep(parts: Sequence[str]) -> dict[str, list[Any]]:
    """Parse ``["method=maml,meta-sgd", "seed=0,1"]`` to field → values; unknown names suggest the nearest.

    Examples:
        >>> from firststep.training import parse_sweep
        >>> parse_sweep(["method=maml,anil", "seed=0,1"])
        {'method': ['maml', 'anil'], 'seed': [0, 1]}
    """
    kinds = typing.get_type_hints(TrainConfig)
    fields = [field.name for field in dataclasses.fields(TrainConfig)]
    varied: dict[str, list[Any]] = {}
    for part in parts:
        name, equals, texts = part.partition("=")
        field = name.strip().lstrip("-").replace("-", "_")
        if field not in fields:
            raise unknown("field of a sweep", name, [each.replace("_", "-") for each in fields])
        if not equals or not texts:
            raise FirststepError(f"`sweep` {part}: write it as {name}=value,value")
        if field in varied:
            raise FirststepError(f"`sweep` has {name} twice")
        values = [_value(field, text.strip(), kinds[field]) for text in texts.split(",")]
        if len(set(values)) < len(values):
            raise FirststepError(f"`sweep` {part} has a value twice")
        varied[field] = values
    if not varied:
        raise FirststepError("`sweep` needs the settings that vary, such as seed=0,1,2")
    return varied


def _value(field: str, text: str, kind: Any) -> Any:
    """Convert a text to the field's type; ``none`` becomes None where the field allows it."""
    if isinstance(kind, types.UnionType):
        if text.lower() == "none":
            return None
        kind = next(each for each in typing.get_args(kind) if each is not types.NoneType)
    allowed = choices()
    if field in allowed and text not in allowed[field]:
        raise unknown(field, text, allowed[field])
    try:
        return TRUTH[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        words = {int: "an integer", float: "a number", bool: "true or false"}
        raise FirststepError(f"`sweep` {field}={text}: {field} is {words.get(kind, kind.__name__)}") from None


def product_of(base: TrainConfig, varied: dict[str, list[Any]]) -> dict[str, TrainConfig]:
    """Return every combination by a name that lists the varied fields and serves as a folder name.

    Examples:
        >>> from firststep.training import product_of
        >>> list(product_of(run.config, {"method": ["maml", "anil"], "seed": [0, 1]}))
        ['method-maml_seed-0', 'method-maml_seed-1', 'method-anil_seed-0', 'method-anil_seed-1']
    """
    runs: dict[str, TrainConfig] = {}
    for values in itertools.product(*varied.values()):
        chosen = dict(zip(varied, values, strict=True))
        name = folder_name(chosen)
        if name in runs:
            raise FirststepError(f"`sweep`: two runs would have the folder {name}")
        runs[name] = replace(base, **chosen)
    return runs


def folder_name(chosen: dict[str, Any]) -> str:
    """Return a folder name such as ``method-maml_seed-0``."""
    words = (f"{field}-{value.name if isinstance(value, Path) else value}" for field, value in chosen.items())
    return "_".join(re.sub(r"[^\w.+-]+|_", "-", word) for word in words)
