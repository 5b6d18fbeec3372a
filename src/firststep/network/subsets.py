"""Parameter subsets of a network by name: ``cls``, ``cls+emb``, patterns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from torch import nn


class Layers(NamedTuple):
    """Paths of the layers that subsets are named after."""

    classifier: str | None
    embedding: str | None
    embedding_norm: str | None


def tied_names(module: nn.Module) -> dict[str, str]:
    """Return, for parameters with several names, a map from each further name to the first."""
    first = {value: name for name, value in module.named_parameters()}
    return {
        name: first[value]
        for name, value in module.named_parameters(remove_duplicate=False)
        if first[value] != name
    }


def select(
    spec: str | Iterable[str], names: Sequence[str], layers: Layers, tied: Mapping[str, str], network: str
) -> tuple[str, ...]:
    """Return the names of a subset, in the order of ``names``.

    Args:
        spec: as in :meth:`FunctionalModule.subset`.
        names: names of all trainable parameters.
        layers: paths of the network's layers.
        tied: map from further names of a parameter to the one in ``names``.
        network: the network's name for errors.
    """
    chosen: set[str] = set()
    if isinstance(spec, str):
        for part in spec.split("+"):
            chosen.update(_named(part.strip(), names, layers, tied, network))
    else:
        for pattern in spec:
            matches = [name for name in names if fnmatchcase(name, pattern)]
            if not matches:
                raise ValueError(f"no parameter matches {pattern!r}; there are {', '.join(names)}")
            chosen.update(matches)
    if not chosen:
        raise ValueError(f"the parameter subset {spec!r} is empty; there are {', '.join(names)}")
    return tuple(name for name in names if name in chosen)


def _named(
    part: str, names: Sequence[str], layers: Layers, tied: Mapping[str, str], network: str
) -> list[str]:
    if part == "all":
        return list(names)
    if part == "body":
        classifier = [] if layers.classifier is None else _inside(names, layers.classifier, tied)
        return [name for name in names if name not in classifier]
    paths = {"cls": layers.classifier, "emb": layers.embedding, "ebn": layers.embedding_norm}
    if part not in paths:
        raise ValueError(
            f"unknown parameter subset {part!r}: use cls, emb, ebn, body, all, a union like cls+emb, "
            f"or a list of patterns for the names {', '.join(names)}"
        )
    path = paths[part]
    found = [] if path is None else _inside(names, path, tied)
    if part == "cls" and path is None:
        raise ValueError(
            f"{network} has no nn.Linear, so there is no subset 'cls': use 'all', or a list of patterns for "
            f"the names {', '.join(names)}"
        )
    if not found:
        raise ValueError(f"{network} has no parameters for the subset {part!r}; there are {', '.join(names)}")
    return found


def _inside(names: Sequence[str], path: str, tied: Mapping[str, str]) -> list[str]:
    """Return the names of the parameters inside the module at a path; the empty path is the network."""
    prefix = f"{path}." if path else ""
    shared = {name for other, name in tied.items() if other.startswith(prefix)}
    return [name for name in names if name.startswith(prefix) or name in shared]
