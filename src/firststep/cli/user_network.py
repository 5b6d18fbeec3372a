"""A network of the user's own, named on the command line as ``package.module:NAME``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from firststep.errors import FirststepError, reason
from firststep.network import FunctionalModule


def import_network(where: str) -> nn.Module:
    """``package.module:NAME``: an ``nn.Module``, or a function without arguments that makes one."""
    module_name, _, attribute = where.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        with _code_of_the_user(f"cannot import {where!r}"):
            found = getattr(importlib.import_module(module_name), attribute)
    finally:
        sys.path.pop(0)
    if isinstance(found, nn.Module):
        return found
    with _code_of_the_user(f"{where}() failed"):
        made = found()
    if not isinstance(made, nn.Module):
        raise FirststepError(f"{where} gives a {type(made).__name__}, not an nn.Module")
    return made


def check_forward(network: FunctionalModule, images: Tensor, where: str) -> None:
    """Call it once on its own: what fails later is not in its ``forward``."""
    with torch.no_grad(), _code_of_the_user(f"{where} failed on images of shape {list(images.shape)}"):
        network(network.params(), images)


@contextmanager
def _code_of_the_user(what: str) -> Iterator[None]:
    """Whatever it raises is the user's to mend, and said to be so; SystemExit too would end the command."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        text = str(error) if isinstance(error, ImportError) else reason(error)
        raise FirststepError(f"{what}: {text}") from error
