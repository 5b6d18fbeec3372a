"""Run folders whose files are damaged, exchanged, from another version, or not files at all."""

from __future__ import annotations

import json
import os
import shutil
import struct
from pathlib import Path
from random import Random

from campaigns.fuzz.case import Case, Sandbox
from campaigns.fuzz.mutate import NASTY_VALUES, changed_json, damaged, json_bytes
from campaigns.stock import QUICK_TEST

JSON_FILES = ("run.json", "sessions.json")
TENSORS = ("checkpoints/best.safetensors", "checkpoints/last.safetensors")


def case(rng: Random, sandbox: Sandbox) -> Case:
    if rng.random() < 0.1:
        return _paper_results(rng, sandbox)
    run = sandbox.work / "run"
    shutil.copytree(sandbox.stock.run, run)
    evaluation = next(path for path in sorted((run / "evaluations").glob("*.json")))
    files = [*JSON_FILES, *TENSORS, "metrics.jsonl", str(evaluation.relative_to(run))]
    weights = [6, 1, 3, 3, 3, 4]
    damages = []
    for name in dict.fromkeys(rng.choices(files, weights, k=rng.choice((1, 1, 1, 2)))):
        damages.append(f"{name}: {_damage(rng, run / name)}")
    arguments, writes = _command(rng, sandbox, files)
    return Case(what=f"{' '.join(arguments)} ({'; '.join(damages)})", arguments=arguments, writes=writes)


def _command(rng: Random, sandbox: Sandbox, files: list[str]) -> tuple[list[str], tuple[str, ...]]:
    run = rng.choice(("run", "run", "run", str(sandbox.work / "run"), "./run/"))
    which = rng.choice((["--which", "last"], []))
    chosen = rng.choice(("evaluate", "compare", "compare", "adapt", "diagnose", "resume", "longer"))
    if chosen == "evaluate":
        return ["evaluate", run, *QUICK_TEST, *which], ("run/evaluations",)
    if chosen == "compare":
        runs = rng.choice(([run], [run, str(sandbox.stock.run)], [str(sandbox.stock.run), run]))
        return ["compare", *runs, *QUICK_TEST], ("comparison", "run/evaluations")
    if chosen == "adapt":
        images = [
            "--support",
            str(sandbox.stock.support),
            "--query",
            str(sandbox.stock.folder / "query.png"),
        ]
        return ["adapt", run, *images, "--steps", "1", *which], ("adapted",)
    if chosen == "diagnose":
        return ["diagnose", run, "--tasks", "1", "--shots", "2", "--subsets", "cls", "all"], ("spectrum.png",)
    more = ["--updates", "5"] if chosen == "longer" else []
    restart = ["--restart"] if rng.random() < 0.2 else []
    return ["train", "--resume", run, *more, *restart], tuple(
        f"run/{name}" for name in (*files, "tensorboard", ".lock")
    )


def _damage(rng: Random, path: Path) -> str:
    """Changes the file in one way; says which."""
    if not path.exists():
        return "already gone"
    if path.is_dir() or path.is_symlink() or path.is_fifo():
        return "already another thing"
    kind = rng.random()
    if kind < 0.12:
        return _replaced(rng, path)
    if path.suffix == ".safetensors":
        return _tensors(rng, path)
    if path.suffix == ".jsonl":
        return _lines(rng, path)
    if kind < 0.25:
        path.write_bytes(damaged(rng, path.read_bytes()))
        return "bytes"
    path.write_bytes(json_bytes(rng, changed_json(rng, json.loads(path.read_text()))))
    return "values"


def _replaced(rng: Random, path: Path) -> str:
    """Something else under its name."""
    path.unlink()
    what = rng.choice(("nothing", "folder", "dangling link", "loop", "fifo", "empty", "device", "json"))
    if what == "folder":
        path.mkdir()
    elif what == "dangling link":
        path.symlink_to("nowhere")
    elif what == "loop":
        path.symlink_to(path.name)
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "empty":
        path.touch()
    elif what == "device":
        path.symlink_to("/dev/full")
    elif what == "json":
        path.write_text(json.dumps(rng.choice(NASTY_VALUES)))
    return f"replaced by {what}"


def _lines(rng: Random, path: Path) -> str:
    lines = path.read_bytes().splitlines()
    at = rng.randrange(len(lines) + 1)
    nasty = (
        b"\xff\xfe\n",
        b"[]",
        b"3",
        b"null",
        b'"x"',
        b"{}",
        b"",
        b'{"update": "2"}',
        b'{"update": 10}',
        b"{",
    )
    what = rng.choice(("line", "values", "bytes"))
    if what == "line":
        lines.insert(at, rng.choice(nasty))
    elif what == "values":
        number = rng.randrange(len(lines))
        lines[number] = json.dumps(changed_json(rng, json.loads(lines[number]))).encode()
    else:
        path.write_bytes(damaged(rng, path.read_bytes()))
        return what
    path.write_bytes(b"\n".join(lines) + b"\n")
    return what


def _tensors(rng: Random, path: Path) -> str:
    """The header, the values, their types, or the digest of all of it."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    what = rng.choice(
        ("bytes", "header bytes", "header values", "state", "half", "exchanged", "nan", "fewer")
    )
    if what == "bytes":
        path.write_bytes(damaged(rng, data))
        return what
    if what == "header bytes":
        path.write_bytes(data[:8] + damaged(rng, data[8 : 8 + length]).ljust(length)[:length] + body)
        return what
    names = [name for name in header if name != "__metadata__"]
    if what == "header values":
        header = changed_json(rng, header)
    elif what == "state":
        state = {key: json.loads(value) for key, value in header["__metadata__"].items()}
        state = changed_json(rng, state)
        keep = rng.random() < 0.5
        if isinstance(state, dict):
            for entry in state.values():
                if isinstance(entry, dict) and not keep:
                    entry.pop("digest", None)  # as files from before there were digests
            header["__metadata__"] = {key: json.dumps(value) for key, value in state.items()}
        else:
            header["__metadata__"] = state
    else:
        for entry in header["__metadata__"]:
            header["__metadata__"][entry] = _without_digest(header["__metadata__"][entry])
        if what == "half":
            chosen = rng.choice(names)
            header[chosen]["dtype"] = rng.choice(("F16", "BF16", "I16", "U8", "F64", "BOOL", "F8_E4M3"))
        elif what == "exchanged":
            first, second = rng.choice(names), rng.choice(names)
            header[first], header[second] = header[second], header[first]
        elif what == "nan":
            start, end = header[rng.choice(names)]["data_offsets"]
            value = struct.pack("<f", rng.choice((float("nan"), float("inf"), 1e38)))
            body = body[:start] + value * ((end - start) // 4) + body[end:]
        else:
            del header[rng.choice(names)]
    packed = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(packed)) + packed + body)
    return what


def _without_digest(state: str) -> str:
    values = json.loads(state)
    values.pop("digest", None)
    return json.dumps(values)


def _paper_results(rng: Random, sandbox: Sandbox) -> Case:
    """What ``paper report`` reads, and ``paper show`` writes over."""
    results = sandbox.work / "results"
    shutil.copytree(sandbox.stock.results, results)
    record = rng.choice(sorted(results.rglob("*.json")))
    damage = _damage(rng, record)
    if rng.random() < 0.7:
        arguments = ["paper", "report"]
        writes: tuple[str, ...] = ("results/paper.html", "results/paper-summary.md")
    else:
        arguments, writes = ["paper", "show", "table1", "--runs", "none"], ("results",)
    return Case(what=f"{' '.join(arguments)} ({record.name}: {damage})", arguments=arguments, writes=writes)
