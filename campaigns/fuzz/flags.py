"""Command lines: every flag in the help of every command, with values that are wrong, huge or missing."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from functools import cache
from itertools import pairwise
from random import Random

from campaigns.fuzz.case import Case, Sandbox
from campaigns.stock import QUICK_TEST, TINY, Stock

Values = tuple[str, ...]
NUMBERS: Values = (
    *("-1", "0", "x", "", "1.5", "nan", "-inf", "1e3", "-99999999999999999999", "٣", "1_0", " 1"),
    *("--", "0x10"),
)
RATES: Values = (*NUMBERS, "1e308", "1e-320", "-0.1", "1e10", "None")
HUGE: Values = (
    "99999999999999999999",
    "18446744073709551616",
    "9223372036854775808",
    "4294967296",
    "1000000",
)
WORDS: Values = (
    *("", "x", "-", "--", "..", "\udcff", "a" * 300, "[red]", "é", "a\nb", "nan", "None", "1", "all"),
    *("cls+", "+"),
)
PATHS: Values = (
    *("", ".", "nowhere", "nowhere/deep", "\\0", "a" * 300, "/dev/null", "/dev/full", "/proc/self/mem"),
    *("~nobody", "run", "x.jpg", "x.xyz", ".png", "x.svg"),
)
TYPES = {"INT": NUMBERS, "FLOAT": RATES, "PIXELS": NUMBERS, "N": NUMBERS} | dict.fromkeys(
    ("PATH", "FOLDER", "FILE"), PATHS
)
"""Type of a flag as the help shows it → values. All other types are words."""
MORE: dict[str, Values] = {
    "--device": ("gpu", "cuda:99", "cuda", "meta", "mps", "cpu:7", "xla"),
    "--init": (*PATHS, "builtin:glyphs", "builtin:nothing"),
    "--export": (".onnx", "x.safetensors", "X.SAFETENSORS", "no/x.safetensors"),
}
SWEEPS: Values = (
    *(*WORDS, "seed=0", "seed=", "=1", "seed", "seed=x", "seed=0,0", "method=maml,nothing", "steps=0", "a=b"),
    "seed=1,2=3",
)
LARGE = (
    "--seed",
    "--threads",
    "--size",
    "--image-size",
    "--ways",
    "--shots",
    "--queries",
    "--filters",
    "--memory",
)
"""Numbers that may be absurd. A large number of the others (updates, episodes, tasks) only takes long."""
OUTPUTS = ("--out", "--plot", "--sheet", "--classes-sheet", "--cache", "--export")
QUICK_PRETRAIN = (
    *("--epochs", "1", "--batch", "4", "--validation-episodes", "2"),
    *("--ways", "2", "--shots", "1", "--queries", "1", "--threads", "1"),
)


@cache
def flags_of(command: str) -> dict[str, Values]:
    """Return the flags that take a value, from the help of a command, with values for their types."""
    from firststep.cli import main

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        main([*command.split(), "--help"])
    found = re.findall(r"(--[a-z][a-z-]+) (?:\{None\}\|)?\{?\[?([A-Z]+|\{|1)", text.getvalue())
    return {flag: (*TYPES.get(kind, WORDS), *MORE.get(flag, ())) for flag, kind in found}


def _lines(stock: Stock) -> list[tuple[str, list[str], Values]]:
    """Return (command, arguments with which it works, what it writes)."""
    small, tiny = ["--filters", "4", "--image-size", "16"], [*TINY, *stock.data_flags, "--out", "new"]
    pictures = ["--support", str(stock.support), "--query", str(stock.folder / "query.png")]
    return [
        ("train demo", [*tiny, "--updates", "1"], ("new", "runs")),
        ("train --resume", ["run"], ("run",)),
        ("train demo --sweep", ["seed=0", *tiny, "--updates", "1", "--executor", "inline"], ("new", "runs")),
        ("pretrain", [*small, *stock.data_flags, *QUICK_PRETRAIN, "--out", "new"], ("new", "runs")),
        ("evaluate", ["run", *QUICK_TEST, "--out", "out"], ("out",)),
        ("compare", ["run", *QUICK_TEST], ("comparison", "evaluations")),
        ("adapt", ["run", *pictures, "--steps", "1"], ("adapted",)),
        ("predict", [str(stock.folder / "adapted"), str(stock.folder / "query.png")], ()),
        ("diagnose", ["run", "--tasks", "1", "--shots", "2", "--subsets", "cls"], ("spectrum.png",)),
        ("data", ["folder", str(stock.pictures), "--size", "16", "--sheet", "sheet.png"], ("sheet.png",)),
        ("parameters", ["--backbone", "conv4", "--filters", "4"], ()),
        ("paper show", ["table1", "--runs", "none"], ("results",)),
        ("demo", ["--out", "new"], ("new",)),
    ]


def flags(rng: Random, sandbox: Sandbox) -> Case:
    shutil.copytree(sandbox.stock.run, sandbox.work / "run")
    command, arguments, writes = rng.choice(_lines(sandbox.stock))
    if command == "demo":  # takes minutes where it is right: only lines that are wrong
        wrong = rng.choice(
            (["--updates", rng.choice(("-1", "0", "x", ""))], ["--episodes", "x"], ["--no"], ["a"])
        )
        return Case(
            what=f"demo {wrong}", arguments=["demo", *arguments, *wrong], expected="bad", writes=writes
        )
    if command.endswith("--sweep"):
        arguments[0] = rng.choice(SWEEPS)
    for _ in range(rng.choice((1, 1, 1, 2))):
        arguments = _changed(rng, arguments, flags_of(command))
    words = [*command.split(), *arguments] if rng.random() < 0.97 else [rng.choice(WORDS), *arguments]
    shown = " ".join(repr(a) if not a or not a.isprintable() or " " in a else a[:60] for a in words)
    return Case(what=shown, arguments=words, writes=(*writes, *_outputs(arguments), "run/evaluations"))


def _outputs(arguments: list[str]) -> list[str]:
    """Return what the flags for files and folders name; "." is the working folder."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    named = [value for flag, value in pairwise(words) if flag in OUTPUTS]
    return ["" if value == "." else value.partition("/")[0] or value for value in named]


def _changed(rng: Random, arguments: list[str], flags: dict[str, Values]) -> list[str]:
    """Return the line with one word less, one word more, or another value of a flag."""
    action, at = rng.random(), rng.randrange(len(arguments) + 1)
    if action < 0.06:
        return arguments[:at] + arguments[at + 1 :]
    if action < 0.1:
        word = rng.choice(("--nothing", "-x", "--help", "--out", "--", "extra", "--="))
        return [*arguments[:at], word, *arguments[at:]]
    flag = rng.choice(list(flags))
    value = rng.choice(HUGE if flag in LARGE and rng.random() < 0.4 else flags[flag])
    return [*arguments, flag, value] if rng.random() < 0.9 else [*arguments, f"{flag}={value}"]
