"""Load a user's own code, named as ``package.module:NAME``."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from firststep.errors import FirststepError, reason


def import_attribute(where: str) -> Any:
    """Import ``package.module:NAME``; search the working folder first."""
    module_name, _, attribute = where.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        with code_of_the_user(f"cannot import {where!r}"):
            return getattr(importlib.import_module(module_name), attribute)
    finally:
        sys.path.pop(0)


def make_network(where: str, options: Mapping[str, Any]) -> nn.Module:
    """Return the named ``nn.Module``, or call the named function with those of ``options`` that it accepts.

    Examples:
        >>> from firststep.backbones import make_network
        >>> own = make_network("firststep.backbones:Conv", {"ways": 3, "image_size": 32, "channels": 1})
        >>> own(torch.rand(2, 1, 32, 32)).shape
        torch.Size([2, 3])
    """
    found = import_attribute(where)
    if isinstance(found, nn.Module):
        return found
    with code_of_the_user(f"{where}() failed"):
        made = found(**_accepted(found, options))
    if not isinstance(made, nn.Module):
        raise FirststepError(f"{where} gives a {type(made).__name__}, not an nn.Module")
    return made


def _accepted(function: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options for which the function has a parameter."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        return {}
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return dict(options)
    names = {p.name for p in parameters if p.kind is not inspect.Parameter.POSITIONAL_ONLY}
    return {name: value for name, value in options.items() if name in names}


@contextmanager
def code_of_the_user(what: str) -> Iterator[None]:
    """Turn any exception of the user's code into one line that names it; even SystemExit."""
    try:
        yield
    except (KeyboardInterrupt, FirststepError):
        raise
    except BaseException as error:
        text = str(error) if isinstance(error, ImportError) else reason(error)
        raise FirststepError(f"{what}: {text}") from error
