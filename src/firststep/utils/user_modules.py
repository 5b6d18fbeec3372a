"""The user's own modules, imported before a command runs so that they can register their parts."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable

from firststep.errors import FirststepError, reason

VARIABLE = "FIRSTSTEP_IMPORT"
"""Environment variable with module names, separated by commas; worker processes inherit it."""


def user_modules() -> list[str]:
    """Return the module names in the environment variable."""
    return [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]


def import_user_modules(more: Iterable[str] = ()) -> None:
    """Import the modules in the environment variable and in ``more``; add the latter to the variable.

    The working folder is searched first. Worker processes call this without arguments before they look up
    any name.
    """
    names = list(dict.fromkeys([*user_modules(), *more]))
    if not names:
        return
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)  # kept, so that later imports and unpickling find the module
    for name in names:
        _import(name, folder)
    os.environ[VARIABLE] = ",".join(names)


def _import(name: str, folder: str) -> None:
    if name.endswith(".py") or "/" in name or os.sep in name:
        raise FirststepError(f"cannot import {name}: write the module as in an import statement, without .py")
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
    except BaseException as error:  # a user's module may raise anything, also SystemExit
        raise FirststepError(f"cannot import {name}: {reason(error)}") from error
