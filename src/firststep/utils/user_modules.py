"""Modules of the user's own, imported before a command runs so that they can register what they add."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable

from firststep.errors import FirststepError, reason

VARIABLE = "FIRSTSTEP_IMPORT"
"""Environment variable with the names, separated by commas. Processes that a command starts inherit it."""


def user_modules() -> list[str]:
    """The names in the environment variable."""
    return [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]


def import_user_modules(more: Iterable[str] = ()) -> None:
    """Import the modules of the environment variable and ``more``, which are added to it.

    A module is looked for in the working folder first. Worker processes call this without arguments before
    they look anything up by name.
    """
    names = list(dict.fromkeys([*user_modules(), *more]))
    if not names:
        return
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)  # stays: what the module imports later, or pickles, is found there too
    for name in names:
        _import(name, folder)
    os.environ[VARIABLE] = ",".join(names)


def _import(name: str, folder: str) -> None:
    if name.endswith(".py") or os.sep in name:
        raise FirststepError(
            f"cannot import {name}: name the module as an import statement does, without .py"
        )
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise FirststepError(f"cannot import {name}: {error}") from error
        raise FirststepError(
            f"cannot import {name}: there is no such module in {folder} or among the installed packages"
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a module of the user's does when it is imported
        raise FirststepError(f"cannot import {name}: {reason(error)}") from error
