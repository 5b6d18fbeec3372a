"""Files that commands read: each kind is made, damaged and given to one of the commands that read it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random

from campaigns.fuzz.case import Case, Expected, Sandbox
from campaigns.fuzz.copies import dataset_copies
from campaigns.fuzz.damage import damage_file, damage_folder, replace
from campaigns.fuzz.packed import archive
from campaigns.fuzz.pictures import picture
from campaigns.stock import QUICK_TEST

Layouts = dict[str, tuple[str, ...]]
FOLDERS: Layouts = {
    "folder": ("folder_with_splits",),
    "cub": ("cub", "cub_train_and_test"),
    "mini-imagenet": ("mini_folders", "mini_csv"),
    "tiered-imagenet": ("tiered_imagenet_folder",),
}
PICKLED: Layouts = {
    "cifar-fs": ("cifar_pickles", "cifar_original"),
    "fc100": ("cifar_pickles",),
    "mini-imagenet": ("mini_cache", "mini_category_split"),
    "tiered-imagenet": ("tiered_png", "tiered_png_bytes", "tiered_npz"),
}
"""Dataset: the functions of ``tests/helpers/dataset_copies.py`` that write a small copy of it."""


def _data(rng: Random, what: str, dataset: str, path: str, expected: Expected, *flags: str) -> Case:
    """Return a case of ``firststep data``, sometimes with flags that accept what is broken or missing."""
    flags = ("--cache", "cache", "--sheet", "sheet.png", *flags, *rng.choice(((), (), ("--skip-broken",))))
    arguments = ["data", dataset, path, *flags]
    return Case(
        what=f"{' '.join(arguments)}: {what}",
        arguments=arguments,
        expected=expected,
        writes=("cache", "sheet.png"),
    )


def _load(path: Path, size: int, channels: int, ink: bool) -> object:
    from firststep.data import load_image

    pixels = load_image(path, size, channels, ink=ink)
    assert pixels.shape == (size, size, channels), pixels.shape
    assert pixels.dtype == "uint8", pixels.dtype
    return pixels


def images(rng: Random, sandbox: Sandbox) -> Case:
    """Make one picture: alone, as a query, in a support set or in a dataset."""
    content, what, expected = picture(rng)
    stock, work = sandbox.stock, sandbox.work
    where = rng.choice(("load", "load", "load", "query", "support", "dataset"))
    folder = {"support": "support/class3", "dataset": "own/train/traina"}.get(where, "")
    if folder:
        copied = stock.support if where == "support" else stock.pictures
        shutil.copytree(copied, work / Path(folder).parts[0])
    path = work / folder / f"odd.{rng.choice(('png', 'jpg', 'tif', 'gif', 'bmp', 'webp', 'ppm'))}"
    path.write_bytes(content)
    if where == "load":
        size, channels = rng.choice((16, 4, 84)), rng.choice((1, 3))
        ink = channels == 1 and rng.random() < 0.5
        return Case(
            what=f"load_image: {what}", expected=expected, call=lambda: _load(path, size, channels, ink)
        )
    if where == "dataset":
        case = _data(rng, what, "folder", "own", expected, "--size", "16")
        case.expected = "good" if "--skip-broken" in case.what else expected
        return case
    support, query = stock.support, path
    if where == "support":
        support, query = work / "support", stock.folder / "query.png"
    flags = ["--steps", "1", "--format", rng.choice(("table", "csv", "json"))]
    arguments = ["adapt", str(stock.run), "--support", str(support), "--query", str(query), *flags]
    return Case(what=f"adapt {where}: {what}", arguments=arguments, expected=expected, writes=("adapted",))


def archives(rng: Random, sandbox: Sandbox) -> Case:
    kind, content, what, expected = archive(rng)
    (sandbox.work / f"own.{kind}").write_bytes(content)
    dataset = rng.choice(("folder", "folder", "folder", "omniglot", "cub", "mini-imagenet"))
    if dataset == "folder":
        return _data(rng, what, dataset, f"own.{kind}", expected, "--size", "16")
    return _data(rng, what, dataset, f"own.{kind}", "any", "--size", "16", "--partial")


def _copy(rng: Random, folder: Path, layouts: Layouts) -> tuple[str, str]:
    """Write a small copy of a dataset; return the dataset and the layout."""
    dataset = rng.choice(list(layouts))
    layout = rng.choice(layouts[dataset])
    folder.mkdir()
    write = getattr(dataset_copies(), layout)
    _ = write(folder, dataset) if layout.startswith("cifar") else write(folder)
    return dataset, layout


def pickles(rng: Random, sandbox: Sandbox) -> Case:
    """Make a pickle or npz of a dataset, whole in one case of nine."""
    dataset, layout = _copy(rng, sandbox.work / "own", PICKLED)
    path = rng.choice(sorted(p for p in (sandbox.work / "own").rglob("*") if p.is_file()))
    is_whole = rng.random() < 0.11
    what = "whole" if is_whole else damage_file(rng, path)
    size = rng.choice(((), ("--size", "8")))
    what = f"{layout}, {path.name} {what}"
    return _data(rng, what, dataset, "own", "good" if is_whole else "any", "--partial", *size)


def datasets(rng: Random, sandbox: Sandbox) -> Case:
    """Make a folder of a dataset, or a cache."""
    if rng.random() < 0.3:
        return _cache(rng, sandbox)
    dataset, layout = _copy(rng, sandbox.work / "own", FOLDERS)
    what = "; ".join(damage_folder(rng, sandbox.work / "own") for _ in range(rng.choice((1, 1, 2))))
    partial = rng.choice(((), ("--partial",), ("--partial",)))
    return _data(rng, f"{layout}: {what}", dataset, "own", "any", "--size", "16", *partial)


def _cache(rng: Random, sandbox: Sandbox) -> Case:
    """Make a cache that is damaged."""
    work, stock = sandbox.work, sandbox.stock
    shutil.copytree(stock.pictures, work / "own")  # keeps the times, on which the name of the cache depends
    ignored = shutil.ignore_patterns("*.lock", "compiled*")
    shutil.copytree(stock.folder / "cache", work / "cache", ignore=ignored)
    built = next(path for path in (work / "cache").iterdir() if path.name.startswith("folder-16px"))
    files = sorted(built.iterdir())
    victim = built / "dataset.json" if rng.random() < 0.6 else rng.choice(files)
    what = f"{victim.name} in the cache {(replace if rng.random() < 0.2 else damage_file)(rng, victim)}"
    case = _data(rng, what, "folder", "own", "any", "--size", "16")
    if rng.random() < 0.5:
        test = ["--episodes", "2", "--steps", "0", "--out", "out", "--data-path", "own"]
        case.arguments, case.writes = ["evaluate", str(stock.run), *test], ("cache", "out")
        case.what = f"{' '.join(case.arguments)}: {what}"
    case.environment = {"FIRSTSTEP_CACHE": "cache"}
    return case


def run_folders(rng: Random, sandbox: Sandbox) -> Case:
    """Make a run or the results of ``paper`` with a damaged file or two."""
    is_run = rng.random() < 0.9
    name = "run" if is_run else "results"
    folder = sandbox.work / name
    shutil.copytree(sandbox.stock.run if is_run else sandbox.stock.results, folder)
    files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.suffix in READ)
    weights = [6 if "run.json" in file else 3 if "sessions" not in file else 1 for file in files]
    chosen = dict.fromkeys(rng.choices(files, weights, k=rng.choice((1, 1, 1, 2))))
    what = "; ".join(f"{file} {damage_file(rng, folder / file)}" for file in chosen)
    arguments, writes = _run_command(rng, sandbox, files) if is_run else rng.choice(PAPER)
    writes = (*writes, *_named_cache(folder / "run.json"))
    return Case(what=f"{' '.join(arguments)} ({what})", arguments=arguments, writes=writes)


def _named_cache(path: Path) -> tuple[str, ...]:
    """Return the cache folder that a changed run.json asks for, if any."""
    try:
        name = json.loads(path.read_bytes())["config"]["cache"] if path.is_file() else None
    except (ValueError, LookupError, TypeError):
        return ()
    return (name.partition("/")[0],) if isinstance(name, str) and name.partition("/")[0] else ()


READ = (".json", ".jsonl", ".safetensors")
PAPER = (
    *[(["paper", "report"], ("results/paper.html", "results/paper-summary.md"))] * 2,
    (["paper", "show", "table1", "--runs", "none"], ("results",)),
)


def _run_command(rng: Random, sandbox: Sandbox, files: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return a command that reads a run, and what it may write."""
    stock = sandbox.stock
    run = rng.choice(("run", "run", "run", str(sandbox.work / "run"), "./run/"))
    which = rng.choice((["--which", "last"], []))
    command = rng.choice(("evaluate", "compare", "compare", "adapt", "diagnose", "train", "train"))
    if command == "evaluate":
        return ["evaluate", run, *QUICK_TEST, *which], ("run/evaluations",)
    if command == "compare":
        runs = rng.choice(([run], [run, str(stock.run)], [str(stock.run), run]))
        return ["compare", *runs, *QUICK_TEST], ("comparison", "run/evaluations")
    if command == "adapt":
        pictures = ["--support", str(stock.support), "--query", str(stock.folder / "query.png")]
        return ["adapt", run, *pictures, "--steps", "1", *which], ("adapted",)
    if command == "diagnose":
        return ["diagnose", run, "--tasks", "1", "--shots", "2", "--subsets", "cls", "all"], ("spectrum.png",)
    more = [*rng.choice(([], ["--updates", "5"])), *(["--restart"] if rng.random() < 0.2 else [])]
    writes = tuple(f"run/{name}" for name in (*files, "tensorboard", ".lock"))
    return ["train", "--resume", run, *more], writes
