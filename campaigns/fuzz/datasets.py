"""Dataset folders with broken links, pipes, undecodable names, and damaged caches."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from random import Random

from campaigns.fuzz.case import Case, Sandbox
from campaigns.fuzz.copies import dataset_copies
from campaigns.fuzz.mutate import changed_json, damaged, json_bytes
from campaigns.stock import draw

LAYOUTS = {
    "folder_with_splits": "folder",
    "cub": "cub",
    "cub_train_and_test": "cub",
    "mini_folders": "mini-imagenet",
    "mini_csv": "mini-imagenet",
    "tiered_imagenet_folder": "tiered-imagenet",
}
"""Writer of a copy: dataset."""


def case(rng: Random, sandbox: Sandbox) -> Case:
    return _damaged_cache(rng, sandbox) if rng.random() < 0.3 else _strange_folder(rng, sandbox)


def _strange_folder(rng: Random, sandbox: Sandbox) -> Case:
    layout = rng.choice(list(LAYOUTS))
    dataset = LAYOUTS[layout]
    folder = sandbox.work / "own"
    getattr(dataset_copies(), layout)(folder)
    words = "; ".join(_changed(rng, folder) for _ in range(rng.choice((1, 1, 2))))
    flags = ["--cache", "cache", "--sheet", "sheet.png", "--size", "16"]
    flags += rng.choice(([], ["--partial"], ["--partial"])) + rng.choice(([], [], ["--skip-broken"]))
    arguments = ["data", dataset, "own", *flags]
    return Case(
        what=f"{' '.join(arguments)} {layout}: {words}", arguments=arguments, writes=("cache", "sheet.png")
    )


def _changed(rng: Random, folder: Path) -> str:
    folders = sorted(p for p in folder.rglob("*") if p.is_dir() and not p.is_symlink())
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    where, victim = rng.choice([folder, *folders]), rng.choice(files)
    what = rng.choice(CHANGES)
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
        rng.choice(lists).write_bytes(rng.choice(NOT_UTF_8))
    elif what == "odd list" and (lists := [p for p in files if p.suffix in (".csv", ".txt")]):
        rng.choice(lists).write_text(rng.choice(LISTS))
    elif what == "broken image":
        victim.write_bytes(damaged(rng, victim.read_bytes()))
    elif what == "empty file":
        victim.write_bytes(b"")
    elif what == "few":
        for path in files[1:]:
            path.unlink()
    return what


CHANGES = (
    *("dangling link", "loop", "pipe", "file is a pipe", "file is a folder", "undecodable name"),
    *("undecodable class", "markup", "line break", "same name", "empty class", "class gone", "not UTF-8"),
    *("odd list", "odd list", "broken image", "empty file", "few"),
)
NOT_UTF_8 = (b"\xff\xfefilename,label\n", b"filename,label\n\xe9,\xff\n", b"\0")
LISTS = (
    *("filename,label\n", "", "filename\n", 'filename,label\n"a', "filename,label\na\n"),
    *("label,filename\n,\n", "filename,label\n../x.jpg,n1\n", "filename,label\n" + "x" * 200_000),
    "filename,label,filename\na,b,c,d\n",
)


def _damaged_cache(rng: Random, sandbox: Sandbox) -> Case:
    """Make a cache that is damaged, or that another version made."""
    source = sandbox.work / "own"
    shutil.copytree(sandbox.stock.pictures, source)  # keeps the times, on which the name of the cache depends
    cache = sandbox.work / "cache"
    shutil.copytree(
        sandbox.stock.folder / "cache", cache, ignore=shutil.ignore_patterns("*.lock", "compiled*")
    )
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
        arguments, writes = ["evaluate", str(sandbox.stock.run), *test], ("cache", "out")
    return Case(
        what=f"{' '.join(arguments)}, cache: {what}",
        arguments=arguments,
        writes=writes,
        environment={"FIRSTSTEP_CACHE": "cache"},
    )
