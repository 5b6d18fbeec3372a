"""The packages as a table: the layers of the import contract, and the imports that the files make."""

from __future__ import annotations

import ast
import tomllib
from functools import cache

from docsite.definitions import SOURCE
from docsite.paths import ROOT
from firststep.utils.table import Table

PACKAGE = SOURCE / "firststep"


def layers() -> list[list[str]]:
    """Return the packages by layer, the highest first; those of one layer do not import each other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (packages,) = [contract for contract in contracts if contract["id"] == "packages"]
    return [[name.strip() for name in layer.split("|")] for layer in packages["layers"]]


@cache
def imports() -> dict[str, set[str]]:
    """Return, for each package, the packages that its files import."""
    found: dict[str, set[str]] = {name: set() for layer in layers() for name in layer}
    for file in sorted(PACKAGE.rglob("*.py")):
        package = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if package not in found:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for parts in (module.split(".") for module in modules):
                if parts[0] == "firststep" and len(parts) > 1 and parts[1] in found and parts[1] != package:
                    found[package].add(parts[1])
    return found


def table() -> str:
    """Return one row per layer: its packages, and what each of them imports."""
    order = [name for layer in layers() for name in layer]
    rows = Table(["package", "imports"], left_aligned=2)
    for name in order:
        rows.add_row(f"`{name}`", ", ".join(sorted(imports()[name], key=order.index)) or "nothing")
    return rows.to_markdown()
