"""Dataset folders as they are found: links to nowhere, pipes, names in no encoding, caches of old."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from random import Random

from campaigns.fuzz.case import Case, Room
from campaigns.fuzz.copies import dataset_copies
from campaigns.fuzz.mutate import changed_json, damaged, json_bytes
from campaigns.stock import CLASSES, draw

LAYOUTS = (
    "folder_with_splits",
    "cub",
    "cub_train_and_test",
    "mini_folders",
    "mini_csv",
    "tiered_imagenet_folder",
)
NAMES = {
    "mini_folders": "mini-imagenet",
    "mini_csv": "mini-imagenet",
    "tiered_imagenet_folder": "tiered-imagenet",
}
SPLIT = [*CLASSES["train"], *CLASSES["val"]]


def case(rng: Random, room: Room) -> Case:
    return _old_cache(rng, room) if rng.random() < 0.3 else _odd_folder(rng, room)


def _odd_folder(rng: Random, room: Room) -> Case:
    layout = rng.choice(LAYOUTS)
    dataset = NAMES.get(layout, "cub" if layout.startswith("cub") else "folder")
    folder = room.work / "own"
    getattr(dataset_copies(), layout)(folder)
    words = "; ".join(_odd(rng, folder) for _ in range(rng.choice((1, 1, 2))))
    flags = ["--cache", "cache", "--sheet", "sheet.png", "--size", "16"]
    flags += rng.choice(([], ["--partial"], ["--partial"])) + rng.choice(([], [], ["--skip-broken"]))
    arguments = ["data", dataset, "own", *flags]
    return Case(
        what=f"{' '.join(arguments)} {layout}: {words}", arguments=arguments, writes=("cache", "sheet.png")
    )


def _odd(rng: Random, folder: Path) -> str:
    folders = sorted(p for p in folder.rglob("*") if p.is_dir() and not p.is_symlink())
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    where, victim = rng.choice([folder, *folders]), rng.choice(files)
    what = rng.choice(ODD)
    if what == "dangling link":
        (where / f"link{rng.randrange(9)}.png").symlink_to("nowhere.png")
    elif what == "loop":
        (where / f"loop{rng.randrange(9)}").symlink_to(folder)
    elif what == "pipe":
        os.mkfifo(where / f"pipe{rng.randrange(9)}.png")
    elif what == "file is a pipe":
        victim.unlink()
        os.mkfifo(victim)
    elif what == "file is a folder":
        victim.unlink()
        victim.mkdir()
    elif what == "undecodable name":
        draw(Path(os.fsdecode(os.fsencode(where) + b"/\xff\xfe.png")), rng)
    elif what == "undecodable class":
        draw(Path(os.fsdecode(os.fsencode(where) + b"/caf\xe9/1.png")), rng)
    elif what == "markup":
        draw(where / "[bold]x[/red]" / "[/].png", rng)
    elif what == "line break":
        draw(where / "two\nlines" / "a\nb\x1b[31m.png", rng)
    elif what == "same name":
        draw(where / "É" / "1.png", rng)
        draw(where / "E\u0301" / "1.png", rng)
    elif what == "empty class":
        (where / f"empty{rng.randrange(9)}").mkdir(exist_ok=True)
    elif what == "class gone" and folders:
        shutil.rmtree(rng.choice(folders))
    elif what == "not UTF-8" and (lists := [p for p in files if p.suffix in (".csv", ".txt")]):
        rng.choice(lists).write_bytes(
            rng.choice((b"\xff\xfefilename,label\n", b"filename,label\n\xe9,\xff\n", b"\0"))
        )
    elif what == "odd list" and (lists := [p for p in files if p.suffix in (".csv", ".txt")]):
        chosen = rng.choice(lists)
        lines: tuple[str, ...] = (
            "filename,label\n",
            "",
            "filename\n",
            'filename,label\n"a',
            "filename,label\na\n",
            "label,filename\n,\n",
        )
        lines += (
            "filename,label\n../x.jpg,n1\n",
            "filename,label\n" + "x" * 200_000,
            "filename,label,filename\na,b,c,d\n",
        )
        chosen.write_text(rng.choice(lines))
    elif what == "broken image":
        victim.write_bytes(damaged(rng, victim.read_bytes()))
    elif what == "empty file":
        victim.write_bytes(b"")
    elif what == "few":
        for path in files[1:]:
            path.unlink()
    return what


ODD = (
    *(
        "dangling link",
        "loop",
        "pipe",
        "file is a pipe",
        "file is a folder",
        "undecodable name",
        "undecodable class",
    ),
    *("markup", "line break", "same name", "empty class", "class gone", "not UTF-8", "odd list", "odd list"),
    *("broken image", "empty file", "few"),
)


def _old_cache(rng: Random, room: Room) -> Case:
    """A cache that was damaged, or made by another version."""
    source = room.work / "own"
    shutil.copytree(room.stock.pictures, source)  # copy2: with its times, which the name of the cache tells
    cache = room.work / "cache"
    shutil.copytree(room.stock.folder / "cache", cache, ignore=shutil.ignore_patterns("*.lock", "compiled*"))
    built = next(path for path in cache.iterdir() if path.name.startswith("folder-16px"))
    what = rng.choice(("record", "record", "record", "record bytes", "pixels", "gone", "folder"))
    record = built / "dataset.json"
    if what == "record":
        record.write_bytes(json_bytes(rng, changed_json(rng, json.loads(record.read_text()))))
    elif what == "record bytes":
        record.write_bytes(damaged(rng, record.read_bytes()))
    elif what == "pixels":
        pixels = rng.choice(sorted(built.glob("*.u8")))
        pixels.write_bytes(damaged(rng, pixels.read_bytes()))
    elif what == "gone":
        rng.choice(sorted(built.iterdir())).unlink()
    else:
        victim = rng.choice(sorted(built.iterdir()))
        victim.unlink()
        victim.mkdir()
    if rng.random() < 0.5:
        arguments = ["data", "folder", "own", "--size", "16", "--cache", "cache", "--sheet", "sheet.png"]
        writes: tuple[str, ...] = ("cache", "sheet.png")
    else:
        test = ["--episodes", "2", "--steps", "0", "--out", "out", "--data-path", "own"]
        arguments, writes = ["evaluate", str(room.stock.run), *test], ("cache", "out")
    return Case(
        what=f"{' '.join(arguments)}, cache: {what}",
        arguments=arguments,
        writes=writes,
        environment={"FIRSTSTEP_CACHE": "cache"},
    )
