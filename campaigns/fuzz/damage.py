"""Damage to a file that suits its content, and to a folder: what disks, editors and attackers leave."""

from __future__ import annotations

import json
import os
import shutil
import struct
from pathlib import Path
from random import Random
from typing import Any

from campaigns.fuzz.mutate import NASTY_VALUES, changed_json, damaged, json_bytes
from campaigns.fuzz.pickled import changed_npz, changed_pickle
from campaigns.fuzz.pictures import picture, png

REPLACEMENTS = ("nothing", "folder", "dangling link", "loop", "pipe", "empty file", "full device", "json")
LINES = (b"\xff\xfe", b"[]", b"3", b"null", b'"x"', b"{}", b"", b'{"update": "2"}', b'{"update": 10}', b"{")
LISTS = (
    *(b"filename,label\n", b"", b"filename\n", b'filename,label\n"a', b"filename,label\na\n"),
    *(b"label,filename\n,\n", b"filename,label\n../x.jpg,n1\n", b"filename,label\n" + b"x" * 200_000),
    *(
        b"filename,label,filename\na,b,c,d\n",
        b"\xff\xfefilename,label\n",
        b"filename,label\n\xe9,\xff\n",
        b"\0",
    ),
)
ODD_NAMES = (
    *(b"\xff\xfe.png", b"caf\xe9/1.png", b"[bold]x[/red]/[/].png", b"two\nlines/a\nb\x1b[31m.png"),
    *("É/1.png".encode(), "E\u0301/1.png".encode(), b" .png", b"C:/0.png", b"x" * 240 + b"/0.png", b"nul"),
)  # fmt: skip
"""Names that are undecodable, contain markup or control characters, differ only in accents, or are long."""


def damage_file(rng: Random, path: Path) -> str:
    """Damage a file; return what was done. A second damage ignores a path that is no longer a file."""
    if not path.is_file() or path.is_symlink():
        return "already no file"
    if rng.random() < 0.12:
        return replace(rng, path)
    data = path.read_bytes()
    kind, change = _kind(path, data)
    changed = damaged(rng, data) if rng.random() < 0.15 else change(rng, data)
    path.write_bytes(changed)
    return f"{kind} changed"


def replace(rng: Random, path: Path) -> str:
    """Put something else under the name of a file."""
    path.unlink()
    what = rng.choice(REPLACEMENTS)
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what in ("empty file", "json"):
        path.write_text("" if what == "empty file" else json.dumps(rng.choice(NASTY_VALUES)))
    elif what != "nothing":
        path.symlink_to({"dangling link": "nowhere", "loop": path.name, "full device": "/dev/full"}[what])
    return f"replaced by {what}"


def damage_folder(rng: Random, root: Path) -> str:
    """Damage a file below, or add or remove an entry; return what was done."""
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    folders = [root, *sorted(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]
    where = rng.choice(folders)
    way = rng.choice(
        ("file", "file", "file", "list", "name", "name", "name", "link", "pipe", "empty", "gone", "few")
    )
    lists = [path for path in files if path.suffix in (".csv", ".txt")]
    if way == "list" and lists:
        return damage_file(rng, rng.choice(lists))
    if way == "name":
        name = rng.choice(ODD_NAMES)
        path = Path(os.fsdecode(os.fsencode(where) + b"/" + name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(rng, 16))
        return f"a picture called {name[:40]!r}"
    if way in ("link", "pipe", "empty"):
        path = where / f"{way}{rng.randrange(9)}{rng.choice(('', '.png'))}"
        if not os.path.lexists(path):
            _add(rng, path, way, root)
        return f"{way} added"
    if way == "gone" and len(folders) > 1:
        shutil.rmtree(rng.choice(folders[1:]))
        return "a folder gone"
    if way == "few":
        for path in files[1:]:
            path.unlink()
        return "one file left"
    path = rng.choice(files)
    return f"{path.name}: {damage_file(rng, path)}"


def _add(rng: Random, path: Path, way: str, root: Path) -> None:
    if way == "link":
        path.symlink_to(rng.choice(("nowhere.png", str(root))))
    elif way == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()


def _kind(path: Path, data: bytes) -> tuple[str, Any]:
    """Return the kind of a file, by its name or first bytes, and the function that changes it."""
    if path.suffix == ".safetensors":
        return "tensors", _tensors
    if path.suffix == ".jsonl":
        return "lines", _lines
    if path.suffix == ".json":
        return "values", lambda rng, data: json_bytes(rng, changed_json(rng, json.loads(data)))
    if path.suffix in (".csv", ".txt"):
        return "list", lambda rng, data: rng.choice(LISTS)
    if data[:1] == b"\x80":
        return "pickle", changed_pickle
    if data[:2] == b"PK":
        return "npz", changed_npz
    if data[:4] == b"\x89PNG" or data[:2] == b"\xff\xd8":
        return "picture", lambda rng, data: picture(rng)[0] if rng.random() < 0.3 else damaged(rng, data)
    return "bytes", damaged


def _lines(rng: Random, data: bytes) -> bytes:
    """Insert a line that is none of ours, or change the values of one."""
    lines = data.splitlines()
    at = rng.randrange(len(lines))
    if rng.random() < 0.5:
        lines.insert(at, rng.choice(LINES))
    else:
        lines[at] = json.dumps(changed_json(rng, json.loads(lines[at]))).encode()
    return b"\n".join(lines) + b"\n"


def _tensors(rng: Random, data: bytes) -> bytes:
    """Change the header, the values, their types, or the digest of all of it."""
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    names = [name for name in header if name != "__metadata__"]
    what = rng.choice(("bytes", "header", "state", "state", "dtype", "exchanged", "nan", "fewer"))
    if what == "bytes":
        return data[:8] + damaged(rng, data[8 : 8 + length]).ljust(length)[:length] + body
    if what == "header":
        header = changed_json(rng, header)
    else:
        state = {key: json.loads(value) for key, value in header["__metadata__"].items()}
        state = changed_json(rng, state) if what == "state" else state
        if what != "state" or rng.random() < 0.5:  # else the digest would hide all other checks
            for entry in state.values() if isinstance(state, dict) else ():
                if isinstance(entry, dict):
                    entry.pop("digest", None)
        packed_state = (
            {key: json.dumps(value) for key, value in state.items()} if isinstance(state, dict) else state
        )
        header["__metadata__"] = packed_state
    first, second = rng.choice(names), rng.choice(names)
    if what == "dtype":
        header[first]["dtype"] = rng.choice(("F16", "BF16", "I16", "U8", "F64", "BOOL", "F8_E4M3"))
    elif what == "exchanged":
        header[first], header[second] = header[second], header[first]
    elif what == "nan":
        start, end = header[first]["data_offsets"]
        value = struct.pack("<f", rng.choice((float("nan"), float("inf"), 1e38)))
        body = body[:start] + value * ((end - start) // 4) + body[end:]
    elif what == "fewer":
        del header[first]
    packed = json.dumps(header).encode()
    return struct.pack("<Q", len(packed)) + packed + body
