"""Rooms are entered by their front door: other rooms import what a room's ``__init__`` exports, nothing else.

Which room may import which is checked by import-linter (``make lint``, contracts in pyproject.toml).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "firststep"
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
FILES = sorted(path.stem for path in SOURCE.glob("*.py"))
"""Rooms of one file, and the package's own."""
SHELF = "utils"
"""Unrelated small tools without a common front: its modules are imported one by one."""


def imports(path: Path) -> Iterator[tuple[int, str, str | None]]:
    """(line, module, name or None) of every import of the package, wherever it stands in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield from ((node.lineno, node.module or "", alias.name) for alias in node.names)


def exported(room: str) -> list[str]:
    for node in ast.parse((SOURCE / room / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []


def complaint(importer: str, module: str, name: str | None) -> str | None:
    """What is wrong with an import in the room ``importer``; None if nothing is."""
    package, _, inside = module.partition(".")
    room, _, deeper = inside.partition(".")
    if package != "firststep" or room in (importer, SHELF):
        return None
    if not room and importer == "__init__" and name in FILES:  # a module of one file, exported as such
        return None
    if not room:
        return f"imports {name or module} from the package itself, which imports all rooms"
    if room not in ROOMS:  # a room of one file
        return None
    if deeper or name is None:
        return f"goes into {module} instead of through firststep.{room}"
    if name not in exported(room):
        return f"takes {name}, which firststep.{room} does not export"
    return None


@pytest.mark.parametrize("room", [*ROOMS, *FILES])
def test_other_rooms_are_entered_by_their_init(room: str) -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{line} {problem}"
        for path in sorted([*(SOURCE / room).rglob("*.py"), *SOURCE.glob(f"{room}.py")])
        for line, module, name in imports(path)
        if (problem := complaint(room, module, name))
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "name", "allowed"),
    [
        ("firststep.data", "Episodes", True),
        ("firststep.data", "no_such_name", False),
        ("firststep.data.cache", "user_cache", False),
        ("firststep.data", None, False),
        ("firststep", "METHODS", False),
        ("firststep.utils.files", "write_text", True),
        ("firststep.training.loop", "train", True),
        ("firststep.network", "FunctionalModule", True),
        ("numpy", "array", True),
    ],
)
def test_what_counts_as_a_front_door(module: str, name: str | None, allowed: bool) -> None:
    assert (complaint("training", module, name) is None) == allowed
