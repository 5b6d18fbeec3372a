"""Cross references in docstrings, such as ``:func:`adapt```: each must name something that exists."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from docsite.definitions import SOURCE

_ROLE = re.compile(r":(?:class|func|meth|mod|data|attr|exc):`~?(?P<name>[\w.]+)`")


def as_code(text: str) -> str:
    """Show Sphinx roles as code, without the name of the package."""
    return _ROLE.sub(lambda role: f"`{role['name'].removeprefix('firststep.')}`", text)


def unresolved(package: Path = SOURCE / "firststep") -> list[str]:
    """Return ``file:line: reference`` for every reference in a package that names nothing."""
    return [
        f"{file.relative_to(package.parent)}:{line}: {name} does not exist"
        for file in sorted(package.rglob("*.py"))
        for line, scope, name in _references(file.read_text())
        if not _resolves(name, scope, importlib.import_module(_module_name(file, package)))
    ]


def _module_name(file: Path, package: Path) -> str:
    parts = file.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _references(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, name of the top-level class around it or "", reference) of a file."""
    if not _ROLE.search(source):
        return
    for top in ast.parse(source).body:
        scope = top.name if isinstance(top, ast.ClassDef) else ""
        for node in ast.walk(top):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for found in _ROLE.finditer(node.value):
                    yield node.lineno, scope, found["name"]


def _resolves(name: str, scope: str, module: ModuleType) -> bool:
    """Look a name up in the class, in the module, in its package, and from the top."""
    parts = name.split(".")
    if scope and _has(getattr(module, scope), parts):
        return True
    package = (module.__package__ or "").split(".")
    return _has(module, parts) or _from_the_top([*package, *parts]) or _from_the_top(parts)


def _from_the_top(parts: list[str]) -> bool:
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        return _has(found, parts[length:])
    return False


def _has(owner: object, parts: list[str]) -> bool:
    for part in parts:
        if part in getattr(owner, "__dataclass_fields__", {}):
            return part == parts[-1]  # the type of a field is not followed
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return True
