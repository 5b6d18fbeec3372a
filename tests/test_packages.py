"""A package imports from another only what its ``__init__`` or its ``_internal`` module exports.

``_internal`` holds names for our own packages that are not public. import-linter checks which package may
import which (``make lint``, contracts in pyproject.toml).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "firststep"
SUBPACKAGES = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
FILES = sorted(path.stem for path in SOURCE.glob("*.py"))
"""Modules of one file, and those of ``firststep`` itself."""
TOOLS = "utils"
"""Unrelated small tools; their modules are imported one by one."""


def imports(path: Path) -> Iterator[tuple[int, str, str | None]]:
    """Yield (line, module, name or None) for every import in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield from ((node.lineno, node.module or "", alias.name) for alias in node.names)


def exported(subpackage: str, module: str = "__init__") -> list[str]:
    public = SOURCE / subpackage / "public.py"  # of a package that loads its names on use
    file = public if module == "__init__" and public.is_file() else SOURCE / subpackage / f"{module}.py"
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []


def complaint(importer: str, module: str, name: str | None) -> str | None:
    """Return what is wrong with an import in the package ``importer``, or None."""
    package, _, inside = module.partition(".")
    subpackage, _, deeper = inside.partition(".")
    if package != "firststep" or subpackage in (importer, TOOLS):
        return None
    if not subpackage and importer == "__init__" and name in FILES:
        return None
    if not subpackage:
        return f"imports {name or module} from firststep itself, which imports every package"
    if subpackage not in SUBPACKAGES:  # a module of one file
        return None
    if deeper == "_internal" and name in exported(subpackage, deeper):
        return None
    if deeper or name is None:
        return f"goes into {module} instead of through firststep.{subpackage}"
    if name not in exported(subpackage):
        return f"takes {name}, which firststep.{subpackage} does not export"
    return None


@pytest.mark.parametrize("subpackage", [*SUBPACKAGES, *FILES])
def test_packages_import_only_what_others_export(subpackage: str) -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} {problem}"
        for path in sorted([*(SOURCE / subpackage).rglob("*.py"), *SOURCE.glob(f"{subpackage}.py")])
        for line, module, name in imports(path)
        if (problem := complaint(subpackage, module, name))
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "name", "allowed"),
    [
        ("firststep.data", "Episodes", True),
        ("firststep.data", "no_such_name", False),
        ("firststep.data.cache", "user_cache", False),
        ("firststep.evaluation._internal", "load_pixels", True),
        ("firststep.evaluation._internal", "ridge", False),
        ("firststep.data", None, False),
        ("firststep", "METHODS", False),
        ("firststep.utils.files", "write_text", True),
        ("firststep.training.loop", "train", True),
        ("firststep.network", "FunctionalModule", True),
        ("numpy", "array", True),
    ],
)
def test_which_imports_are_allowed(module: str, name: str | None, allowed: bool) -> None:
    assert (complaint("training", module, name) is None) == allowed
