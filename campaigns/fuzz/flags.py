"""Command lines: every flag of every command with values that are wrong, odd, huge or missing."""

from __future__ import annotations

import shutil
from itertools import pairwise
from random import Random

from campaigns.fuzz.case import Case, Sandbox
from campaigns.fuzz.flag_values import HUGE, NUMBERS, PATHS, WORDS, Values
from campaigns.stock import QUICK_TEST, TINY

OUTPUTS = ("--out", "--plot", "--sheet", "--classes-sheet", "--cache", "--export")
QUICK_PRETRAIN = (
    *("--epochs", "1", "--batch", "4", "--validation-episodes", "2"),
    *("--ways", "2", "--shots", "1", "--queries", "1", "--threads", "1"),
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
"""Numbers that may be absurd; of others (updates, episodes, tasks) a large one only takes long, as asked."""


def _commands(sandbox: Sandbox) -> dict[str, tuple[list[str], dict[str, Values], Values]]:
    """{command: (a command line that works, {flag: values}, what it writes)}."""
    run, stock = "run", sandbox.stock
    shutil.copytree(stock.run, sandbox.work / "run")
    number, word, path = NUMBERS, WORDS, PATHS
    model: dict[str, Values] = {
        "--device": ("gpu", "cuda:99", "cuda", "", "meta", "mps", "cpu:7", "xla"),
        "--which": word,
    }
    tested: dict[str, Values] = {
        "--shots": number,
        "--queries": number,
        "--seed": number,
        "--episodes": number,
        "--data": word,
    }
    tested |= {
        "--steps": number,
        "--split": word,
        "--subset": word,
        "--rate-multiplier": (*number, "1e-400", "1e308"),
    }
    rates = (*number, "1e308", "1e-320", "-0.1", "1e10")
    trained: dict[str, Values] = {
        f"--{n}": number
        for n in ("ways", "shots", "queries", "steps", "filters", "seed", "meta-batch", "updates")
    }
    trained |= {
        f"--{n}": number for n in ("validate-every", "validation-episodes", "all-every", "threads", "memory")
    }
    trained |= {f"--{n}": number for n in ("warmup", "select-step", "patience")}
    trained |= {f"--{n}": rates for n in ("rate", "gamma", "outer-rate", "weight-decay", "clip-norm", "ema")}
    trained |= {f"--{n}": word for n in ("head", "optimizer", "schedule")}
    trained["--init"] = (*path, "run", "builtin:glyphs", "builtin:nothing")
    trained |= {
        f"--{n}": word for n in ("data", "backbone", "method", "conditioning", "subset", "engine", "backend")
    }
    trained |= {
        "--data-path": path,
        "--cache": path,
        "--image-size": number,
        "--out": path,
        "--device": model["--device"],
    }
    shown: dict[str, Values] = {
        "--scale": word,
        "--data": word,
        "--updates": tuple(value for value in number if value != "None"),  # which is 40,000
        "--filters": number,
        "--name": word,
        "--out": path,
    }
    return {
        "train": (
            ["demo", *TINY, *stock.data_flags, "--updates", "1", "--out", "new"],
            trained,
            ("new", "runs"),
        ),
        "pretrain": (
            ["--filters", "4", "--image-size", "16", *stock.data_flags, *QUICK_PRETRAIN, "--out", "new"],
            {f"--{n}": number for n in ("batch", "seed", "ways", "shots", "queries", "filters", "threads")}
            | {"--rate": rates, "--weight-decay": rates, "--validation-episodes": ("-1", "0", "1", "2", "x")}
            | {"--epochs": ("-1", "0", "1", "x", "1.5"), "--backbone": word, "--data": word}
            | {"--data-path": path, "--out": path, "--resume": path, "--image-size": number},
            ("new", "runs"),
        ),
        "resume": (["--resume", run], {"--updates": ("-1", "0", "1", "x"), "--resume": path}, ("run",)),
        "evaluate": (
            [run, *QUICK_TEST, "--out", "out"],
            tested | model | {"--out": path, "--data-path": path},
            ("out",),
        ),
        "compare": (
            [run, *QUICK_TEST],
            {"--steps": number, "--episodes": number, "--out": path},
            ("comparison", "evaluations"),
        ),
        "adapt": (
            [
                run,
                "--support",
                str(stock.support),
                "--query",
                str(stock.folder / "query.png"),
                "--steps",
                "1",
            ],
            model
            | {"--steps": number, "--support": path, "--query": path, "--out": path, "--format": word}
            | {"--rate-multiplier": rates, "--classifier": (*word, "auto", "ridge", "logistic")}
            | {
                "--export": (
                    *path,
                    "x",
                    "x.bin",
                    ".onnx",
                    "x.safetensors",
                    "X.SAFETENSORS",
                    "no/x.safetensors",
                )
            },
            ("adapted",),
        ),
        "predict": (
            [str(stock.folder / "adapted"), str(stock.folder / "query.png")],
            {"--format": word, "--device": model["--device"]},
            (),
        ),
        "diagnose": (
            [run, "--tasks", "1", "--shots", "2", "--subsets", "cls"],
            {
                "--tasks": number,
                "--shots": number,
                "--ways": number,
                "--subsets": word,
                "--split": word,
                "--data": word,
            }
            | {
                "--plot": (*path, "x", "x.jpg", "x.xyz", ".png", "x.svg", "x.pdf"),
                "--data-path": path,
                "--classifier": word,
            },
            ("spectrum.png", "x", "x.svg", "x.pdf", "x.jpg", ".png"),
        ),
        "data": (
            ["folder", str(stock.pictures), "--size", "16", "--sheet", "sheet.png"],
            {"--size": number, "--seed": number, "--channels": number, "--episode": number, "--split": word}
            | {
                "--sheet": (*path, "x.jpg", "x", ".png"),
                "--classes-sheet": (*path, "c.png"),
                "--cache": path,
            },
            ("sheet.png", "c.png", ".png", "cache"),
        ),
        "parameters": (
            ["--backbone", "conv4", "--filters", "4"],
            {
                "--backbone": word,
                "--filters": number,
                "--ways": number,
                "--image-size": number,
                "--steps": ("-1", "0", "x", "2"),
            },
            (),
        ),
        "paper": (["show", "table1", "--runs", "none"], shown, ("results",)),
        "plan": (["list"], {"--scale": word}, ()),
        "demo": (["--out", "new"], {"--updates": ("-1", "0", "x", ""), "--episodes": ("x",)}, ("new",)),
        "sweep": (
            ["demo", *TINY, *stock.data_flags, "--executor", "inline", "--out", "new", "--sweep"],
            {
                "--sweep": (
                    *word,
                    "seed=",
                    "=1",
                    "seed",
                    "seed=x",
                    "seed=0,0",
                    "method=maml,nothing",
                    "steps=0",
                    "a=b",
                    "seed=1,2=3",
                )
            },
            ("new", "runs"),
        ),
    }


def case(rng: Random, sandbox: Sandbox) -> Case:
    commands = _commands(sandbox)
    name = rng.choice(list(commands))
    base, flags, writes = commands[name]
    if name == "demo":  # its line that works takes minutes: only lines that are wrong
        bad = rng.choice(
            (["--updates", rng.choice(("-1", "0", "x", ""))], ["--episodes", "x"], ["--nothing"], ["a"])
        )
        return Case(what=f"demo {bad}", arguments=["demo", *base, *bad], expected="bad", writes=writes)
    arguments = list(base)
    for _ in range(rng.choice((1, 1, 1, 2))):
        arguments = _changed(rng, arguments, flags)
    word = {"resume": "train", "sweep": "train", "plan": "paper"}.get(name, name)
    command = [word, *arguments] if rng.random() < 0.97 else [rng.choice(WORDS), *arguments]
    shown = " ".join(repr(a) if not a or not a.isprintable() or " " in a else a[:60] for a in command)
    return Case(what=shown, arguments=command, writes=(*writes, *_outputs(arguments), "run/evaluations"))


def _outputs(arguments: list[str]) -> list[str]:
    """What the flags for files and folders name; "." is the working folder."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    named = [value for flag, value in pairwise(words) if flag in OUTPUTS]
    return ["" if value == "." else value.partition("/")[0] or value for value in named]


def _changed(rng: Random, arguments: list[str], flags: dict[str, Values]) -> list[str]:
    action = rng.random()
    if action < 0.06 and arguments:
        at = rng.randrange(len(arguments))
        return arguments[:at] + arguments[at + 1 :]
    if action < 0.1:
        at = rng.randrange(len(arguments) + 1)
        return [
            *arguments[:at],
            rng.choice(("--nothing", "-x", "--help", "--out", "--", "extra", "--=")),
            *arguments[at:],
        ]
    flag = rng.choice(list(flags))
    values = flags[flag]
    if flag in LARGE and rng.random() < 0.4:
        values = HUGE
    return (
        [*arguments, flag, rng.choice(values)]
        if rng.random() < 0.9
        else [*arguments, f"{flag}={rng.choice(values)}"]
    )
