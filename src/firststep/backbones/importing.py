"""Import other people's networks; turn what fails in them into one line that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

import torch

from firststep.backbones.user_network import code_of_the_user
from firststep.errors import FirststepError
from firststep.utils.extras import extra


@contextmanager
def importing(package: str, network: str) -> Iterator[None]:
    """Import a package inside the block; the extra that installs it has the same name."""
    with code_of_the_user(f"cannot import {package}"), extra(package, f"`network={network}`"):
        try:
            yield
        except Exception as error:
            cause = next(filter(_is_of_torchvision, _causes(error)), None)
            if cause is None:
                raise
            raise FirststepError(
                f"cannot import {package}: torchvision {_version('torchvision')} was built for another torch "
                f"than {torch.__version__} ({cause}); install the build of torchvision that belongs to this "
                "torch, from the index that torch came from: both for the CPU, or both for one CUDA version"
            ) from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes: transformers wraps the original one."""
    while error is not None:
        yield error
        error = error.__cause__


def _is_of_torchvision(error: BaseException) -> bool:
    """Return whether torchvision's compiled operations were missing, as beside another build of torch."""
    return "operator torchvision::" in str(error)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(of unknown version)"
