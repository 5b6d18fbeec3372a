"""The diagram of the rooms: the layers are those of the import contract, the arrows the imports made."""

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
    """The rooms, the highest first; those beside each other do not import each other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (rooms,) = [contract for contract in contracts if contract["id"] == "rooms"]
    return [[name.strip() for name in layer.split("|")] for layer in rooms["layers"]]


@cache
def imports() -> dict[str, set[str]]:
    """Room → the rooms that its files import."""
    rooms = [room for layer in layers() for room in layer]
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for file in sorted(PACKAGE.rglob("*.py")):
        room = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room not in rooms:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                package, _, inside = module.partition(".")
                target = inside.partition(".")[0]
                if package == "firststep" and target in rooms and target != room:
                    found[room].add(target)
    return found


def shown() -> dict[str, set[str]]:
    """The imports without those that follow from others, as below both of two rooms."""
    direct = imports()

    def reachable(room: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(direct[room])
        while waiting:
            target = waiting.pop()
            if target not in seen:
                seen.add(target)
                waiting += direct[target]
        return seen

    below = {room: reachable(room) for room in direct}
    return {
        room: {to for to in targets if not any(to in below[via] for via in targets - {to})}
        for room, targets in direct.items()
    }


def diagram() -> str:
    rows = layers()
    drawing = Drawing(WIDTH, ROW * len(rows) + 30, "The rooms of firststep and what imports what")
    boxes: dict[str, Box] = {}
    for number, row in enumerate(rows):
        # Lanes: neighbouring layers are set off sideways, so that arrows past a room can be seen.
        lanes = {1: [(-1, 0, 1)[number % 3]], 2: [-1, 1]}.get(
            len(row), [place - 1.5 for place in range(len(row))]
        )
        for lane, room in zip(lanes, row, strict=True):
            x = WIDTH / 2 + lane * LANE - BOX / 2
            accent = room in ("functional", "meta_learner")
            boxes[room] = Box(x, 16 + ROW * number, BOX, 34, room, accent=accent)
    for room, targets in shown().items():
        for target in sorted(targets):
            source, goal = boxes[room], boxes[target]
            shift = max(-50.0, min(50.0, (goal.centre - source.centre) / 4))
            drawing.curve(source.centre + shift, source.bottom, goal.centre - shift, goal.y - 2)
    for box in boxes.values():
        drawing.box(box)
    return drawing.svg()
