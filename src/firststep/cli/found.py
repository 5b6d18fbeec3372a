"""How ``firststep data`` words what it found."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from firststep.data import Dataset, Episodes, Split, write_class_sheet, write_episode_sheet
from firststep.data.registry import ENTRIES
from firststep.errors import FirststepError

MOST_ODD = 5


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True)


def print_registry() -> None:
    console = _console()
    for entry in ENTRIES.values():
        console.print(f"[bold]{entry.name}[/]  {escape(entry.about)}")
        lines = {
            "classes": entry.splits,
            "from": entry.home,
            "licence": entry.licence,
            "usual size": f"{entry.image_size} px, {'grey' if entry.channels == 1 else 'RGB'}",
        }
        for word, text in lines.items():
            console.print(f"    {word:<12}{escape(text)}")
        for file in entry.files:
            how = "--download fetches it" if file.url else "no direct download"
            console.print(f"    {'file':<12}{file.name}  md5 {file.md5}  ({how})")
        for number, layout in enumerate(entry.layouts):
            console.print(f"    {'read from' if number == 0 else '':<12}{escape(layout.what)}")
        console.print()


def print_dataset(dataset: Dataset) -> None:
    console, record = _console(), dataset.record
    colours = "grey" if dataset.channels == 1 else "RGB"
    console.print(f"[bold]{dataset.name}[/]: {escape(record['layout'])}")
    table = Table("split", "classes", "images", "fewest a class", "most a class")
    for column in table.columns[1:]:
        column.justify = "right"
    for split, facts in record["splits"].items():
        counts = facts["counts"] or [0]
        table.add_row(split, str(len(facts["classes"])), str(sum(counts)), str(min(counts)), str(max(counts)))
    console.print(table)
    console.print(f"pictures     {dataset.image_size} x {dataset.image_size} px, {colours}")
    console.print(f"fingerprint  {dataset.fingerprint}")
    console.print(f"cache        {escape(str(dataset.folder))}")
    for note in record["notes"]:
        console.print(f"note         {escape(note)}")
    for line in record["differences"]:
        console.print(f"[yellow]differs[/]      {escape(line)}")
    if not record["differences"] and dataset.name not in ("glyphs", "folder"):
        console.print("official     classes and counts agree with the published split")
    _print_files(console, "broken", "pictures left out", record["broken"])
    _print_files(console, "odd", "files that are not part of it", record["odd"])


def _print_files(console: Console, word: str, what: str, files: list[str]) -> None:
    if files:
        more = f" and {len(files) - MOST_ODD} more" if len(files) > MOST_ODD else ""
        console.print(f"{word:<13}{len(files)} {what}: {escape(', '.join(files[:MOST_ODD]))}{more}")


def draw_episode(split: Split, episode: int, path: Path) -> None:
    """As much of a 5-way 5-shot episode as the split has room for."""
    if len(split.classes) < 2 or min(split.counts) < 2:
        raise FirststepError(
            f"{split.dataset} {split.name} has no two classes of two images: no episode can be drawn from it"
        )
    fewest = min(split.counts)
    shots = min(5, fewest - 1)
    episodes = Episodes(split, ways=min(5, len(split.classes)), shots=shots, queries=min(16, fewest - shots))
    write_episode_sheet(episodes, episode, path)
    _console().print(f"episode      {escape(str(path))} (left support, right query)")


def draw_classes(split: Split, path: Path) -> None:
    write_class_sheet(split, path)
    _console().print(f"classes      {escape(str(path))}")
