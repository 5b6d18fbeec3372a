"""Show a dataset for ``firststep data``."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from firststep.cli.terminal import console, render
from firststep.data import (
    DATASETS,
    CachedDataset,
    Episodes,
    Split,
    get_dataset_info,
    write_class_sheet,
    write_episode_sheet,
)
from firststep.errors import FirststepError
from firststep.utils.table import Table

LISTED_FILES = 5
"""Number of broken or ignored files that are listed; the others are counted."""


def print_registry() -> None:
    screen = console()
    for info in DATASETS.values():
        screen.print(Text.assemble((info.name, "bold"), "  ", info.about))
        lines = [
            ("classes", info.splits),
            ("from", info.home),
            ("licence", info.licence),
            ("usual size", f"{info.image_size} px, {_colours(info.channels)}"),
        ]
        for file in info.files:
            how = "--download fetches it" if file.url else "no direct download"
            lines.append(("file", f"{file.name}  md5 {file.md5}  ({how})"))
        lines += [("" if n else "read from", layout.what) for n, layout in enumerate(info.layouts)]
        for word, text in lines:
            screen.print(Text(f"    {word:<12}{text}"))
        screen.print()


def print_dataset(dataset: CachedDataset) -> None:
    screen, record = console(), dataset.record
    screen.print(Text.assemble((dataset.name, "bold"), ": ", record.layout))
    table = Table(["split", "classes", "images", "fewest a class", "most a class"])
    for split, facts in record.splits.items():
        counts = facts.counts or [0]
        numbers = len(facts.classes), sum(counts), min(counts), max(counts)
        table.add_row(split, *map(str, numbers))
    screen.print(render(table))
    size = dataset.image_size
    _print_line(screen, "images", f"{size} x {size} px, {_colours(dataset.channels)}")
    _print_line(screen, "fingerprint", dataset.fingerprint)
    _print_line(screen, "cache", str(dataset.folder))
    for note in record.notes:
        _print_line(screen, "note", note)
    for line in record.differences:
        _print_line(screen, "differs", line, style="yellow")
    if not record.differences and get_dataset_info(dataset.name).official is not None:
        _print_line(screen, "official", "classes and counts agree with the published split")
    _print_files(screen, "broken", "images left out", record.broken)
    _print_files(screen, "ignored", "files that are not part of it", record.ignored)


def _colours(channels: int) -> str:
    return "grey" if channels == 1 else "RGB"


def _print_line(screen: Console, word: str, text: str, style: str = "") -> None:
    """Print as ``Text``: square brackets in a file's or class's name are part of the name."""
    screen.print(Text.assemble((f"{word:<13}", style), text))


def _print_files(screen: Console, word: str, what: str, files: list[str]) -> None:
    if files:
        more = f" and {len(files) - LISTED_FILES} more" if len(files) > LISTED_FILES else ""
        _print_line(screen, word, f"{len(files)} {what}: {', '.join(files[:LISTED_FILES])}{more}")


def draw_episode(split: Split, episode: int, path: Path) -> None:
    """Draw a 5-way 5-shot episode, or as much of it as the split has images for."""
    if len(split.classes) < 2 or min(split.counts) < 2:
        raise FirststepError(
            f"{split.dataset} {split.name} has no two classes of two images: no episode can be drawn from it"
        )
    fewest = min(split.counts)
    shots = min(5, fewest - 1)
    episodes = Episodes(split, ways=min(5, len(split.classes)), shots=shots, queries=min(16, fewest - shots))
    write_episode_sheet(episodes, episode, path)
    _print_line(console(), "episode", f"{path} (left support, right query)")


def draw_classes(split: Split, path: Path) -> None:
    write_class_sheet(split, path)
    _print_line(console(), "classes", str(path))
