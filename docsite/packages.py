"""Draw the packages: the layers are those of the import contract, the arrows the imports that are made."""

from __future__ import annotations

import ast
import tomllib
from functools import cache

from docsite.definitions import SOURCE
from docsite.drawing import Box, Drawing
from docsite.paths import ROOT

PACKAGE = SOURCE / "firststep"
WIDTH, BOX, ROW, LANE = 860.0, 140.0, 62.0, 205.0


def layers() -> list[list[str]]:
    """The subpackages, the highest first; those beside each other do not import each other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (subpackages,) = [contract for contract in contracts if contract["id"] == "packages"]
    return [[name.strip() for name in layer.split("|")] for layer in subpackages["layers"]]


@cache
def imports() -> dict[str, set[str]]:
    """Subpackage → the subpackages that its files import."""
    subpackages = [subpackage for layer in layers() for subpackage in layer]
    found: dict[str, set[str]] = {subpackage: set() for subpackage in subpackages}
    for file in sorted(PACKAGE.rglob("*.py")):
        subpackage = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if subpackage not in subpackages:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                package, _, inside = module.partition(".")
                target = inside.partition(".")[0]
                if package == "firststep" and target in subpackages and target != subpackage:
                    found[subpackage].add(target)
    return found


def shown() -> dict[str, set[str]]:
    """The imports without those that follow from others, as below both of two subpackages."""
    direct = imports()

    def reachable(subpackage: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(direct[subpackage])
        while waiting:
            target = waiting.pop()
            if target not in seen:
                seen.add(target)
                waiting += direct[target]
        return seen

    below = {subpackage: reachable(subpackage) for subpackage in direct}
    return {
        subpackage: {to for to in targets if not any(to in below[via] for via in targets - {to})}
        for subpackage, targets in direct.items()
    }


def diagram() -> str:
    rows = layers()
    drawing = Drawing(WIDTH, ROW * len(rows) + 30, "The packages of firststep and what imports what")
    boxes: dict[str, Box] = {}
    for number, row in enumerate(rows):
        # Lanes: neighbouring layers are set off sideways, so that arrows past a subpackage can be seen.
        lanes = {1: [(-1, 0, 1)[number % 3]], 2: [-1, 1]}.get(
            len(row), [place - 1.5 for place in range(len(row))]
        )
        for lane, subpackage in zip(lanes, row, strict=True):
            x = WIDTH / 2 + lane * LANE - BOX / 2
            accent = subpackage in ("functional", "meta_learner")
            boxes[subpackage] = Box(x, 16 + ROW * number, BOX, 34, subpackage, accent=accent)
    for subpackage, targets in shown().items():
        for target in sorted(targets):
            source, goal = boxes[subpackage], boxes[target]
            shift = max(-50.0, min(50.0, (goal.centre - source.centre) / 4))
            drawing.curve(source.centre + shift, source.bottom, goal.centre - shift, goal.y - 2)
    for box in boxes.values():
        drawing.box(box)
    return drawing.svg()
