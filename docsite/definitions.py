"""Find definition and docstring of a public name in the source: attributes have docstrings too."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docsite.paths import ROOT

SOURCE = ROOT / "src"


@dataclass(frozen=True)
class Definition:
    module: str
    name: str
    file: Path
    line: int
    docstring: str

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


def file_of(module: str) -> Path:
    folder = SOURCE.joinpath(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def _public(module: str) -> Path:
    """Return the file that lists a module's names; a package that loads them on use has ``public.py``."""
    public = file_of(f"{module}.public")
    return public if public.is_file() else file_of(module)


def exported(module: str) -> list[str]:
    """Return ``__all__`` of a module."""
    file = _public(module)
    for node in _tree(file).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise LookupError(f"{module} has no __all__")


def definition(module: str, name: str) -> Definition:
    """Follow imports to the file where the name is defined."""
    file = _public(module)
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("firststep"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return definition(node.module, alias.name)
    body = _tree(file).body
    for place, node in enumerate(body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return Definition(module, name, file, node.lineno, ast.get_docstring(node) or "")
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in _targets(node):
            after = body[place + 1] if place + 1 < len(body) else None
            return Definition(module, name, file, node.lineno, _text(after))
    raise LookupError(f"{module} does not define {name}")


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _text(node: ast.stmt | None) -> str:
    """Return the docstring of an attribute: a string by itself on the next line."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return node.value.value
    return ""
