"""Damage: to bytes as disks and transfers do it, to JSON as editors and other versions do it."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

NASTY_NUMBERS: Sequence[Any] = (
    *(0, -1, 1, 2, 3, 255, 256, -(2**31), 2**31, 2**63 - 1, 2**63, 2**64, 10**30, 0.5, -0.0, 1e-320, 1e308),
    *(float("nan"), float("inf"), float("-inf")),
)
NASTY_TEXT: Sequence[str] = (
    *("", " ", "\0", "\n", "nan", "null", "-1", "..", "/", "~", "[red]x[/red]", "[/]", "%s", "{}", "𝕏é"),
    *("\ud800", "a" * 300, "x\ny", "\x1b[31m", "--out", "builtin:"),
)
NASTY_VALUES: Sequence[Any] = (
    *(None, True, False, [], {}, [None], {"": None}, [[]], [[1], [2, 3]], [1, "a"], {"a": {"b": []}}),
    *NASTY_NUMBERS,
    *NASTY_TEXT,
)


def damaged(rng: Random, data: bytes, times: int | None = None) -> bytes:
    """Return the data with some bytes changed, doubled or lost, more often near the start (headers)."""
    content = bytearray(data)
    for _ in range(times or rng.choice((1, 1, 1, 2, 4, 16))):
        if not content:
            return bytes(rng.randbytes(rng.randrange(64)))
        reach = len(content) if rng.random() < 0.5 else min(len(content), 64)
        at = rng.randrange(reach)
        length = rng.choice((1, 1, 2, 4, 8, rng.randrange(1, 64)))
        action = rng.randrange(8)
        if action == 0:
            content[at] ^= 1 << rng.randrange(8)
        elif action == 1:
            content[at : at + length] = rng.randbytes(length)
        elif action == 2:
            content[at : at + length] = rng.choice((b"\0", b"\xff", b"\x7f", b"\x80")) * length
        elif action == 3:
            del content[at : at + length]
        elif action == 4:
            content[at:at] = content[at : at + length]
        elif action == 5:
            content[at:at] = rng.randbytes(length)
        elif action == 6:
            del content[rng.randrange(len(content)) :]
        else:
            width = rng.choice((2, 4, 8))
            value = rng.choice((0, 1, 2 ** (8 * width) - 1, 2 ** (8 * width - 1), rng.randrange(256)))
            content[at : at + width] = value.to_bytes(width, rng.choice(("little", "big")))
    return bytes(content)


def changed_json(rng: Random, value: Any, times: int | None = None) -> Any:
    """Return the value with a few entries replaced, removed, added or doubled at any depth."""
    result = copy.deepcopy(value)
    for _ in range(times or rng.choice((1, 1, 1, 2, 3))):
        result = _change(rng, result)
    return result


def _change(rng: Random, value: Any) -> Any:
    if not isinstance(value, dict | list) or not value or rng.random() < 0.05:
        return _near(rng, value)
    key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
    action = rng.random()
    if isinstance(value[key], dict | list) and value[key] and action < 0.7:
        value[key] = _change(rng, value[key])
    elif action < 0.75:
        del value[key]
    elif action < 0.8 and isinstance(value, list):
        value.append(value[key])
    elif action < 0.85 and isinstance(value, dict):
        value[rng.choice(NASTY_TEXT)] = value[key]
    else:
        value[key] = _near(rng, value[key])
    return value


def _near(rng: Random, value: Any) -> Any:
    """Return another value, of the same kind half the time, to get past the first check."""
    if rng.random() < 0.5:
        if isinstance(value, str):
            return rng.choice(NASTY_TEXT)
        if isinstance(value, int | float):
            return rng.choice(NASTY_NUMBERS)
    return copy.deepcopy(rng.choice(NASTY_VALUES))


def json_bytes(rng: Random, value: Any) -> bytes:
    """Return the value as a file, sometimes in another encoding or damaged."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    encoding = rng.choice(("utf-8",) * 8 + ("utf-16", "latin-1"))
    data = text.encode(encoding, "surrogatepass" if encoding != "latin-1" else "replace")
    return data if rng.random() < 0.9 else damaged(rng, data)
