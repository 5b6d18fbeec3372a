"""The command line: ``firststep COMMAND ...``. Each command parses arguments, calls the library, and prints.

A command is one file here with a function of the same name. The function's signature defines the command's
options, and its docstring is the help. The file is imported only when the command is called.
"""

from __future__ import annotations

import importlib
import os
import sys

from firststep.cli.boundary import interrupts_as_usual, within_boundary
from firststep.errors import FirststepError, unknown
from firststep.utils.extras import extra
from firststep.utils.user_modules import import_user_modules

__all__ = ["COMMANDS", "main"]

COMMANDS: dict[str, str] = {
    "demo": "meta-train with and without conditioning on the embedded glyphs and compare, in minutes",
    "data": "look at a dataset, check it and build its cache; `firststep data list` shows all",
    "pretrain": "train a plain classifier over all training classes, to start meta-training from",
    "train": "meta-train a model by a recipe and flags, or resume a run",
    "evaluate": "test a run: accuracy and condition number after every inner step",
    "compare": "tables, figures and paired differences of several runs",
    "adapt": "adapt a trained model to folders of your own images and classify others",
    "predict": "classify images with an adapted or exported model",
    "page": "teach models your own symbols or pictures in the browser, and watch every step",
    "diagnose": "eigenvalue spectrum and condition number of a run or of your own module",
    "paper": "every table and figure of the paper: plan, run, show beside its numbers, report",
    "check": "check this machine: every engine against a reference, speed and memory",
    "parameters": "count the parameters of every method and backbone",
}
"""Commands with their one-line help; each function is in ``firststep.cli.<command>``."""

SHARED = ("train", "evaluate")
"""Commands that several processes of torchrun can share."""

DESCRIPTION = "Few-shot learners that are good from the first gradient step."


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit status: 0 done, 1 `check` failed, 2 an error, 130 interrupted."""
    own_process = arguments is None
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    rest = [argument for argument in given if argument != "--debug"]
    return within_boundary(lambda: _run(rest, own_process), debug=debug, own_process=own_process)


def _run(arguments: list[str], own_process: bool) -> int:
    modules, arguments = _split_imports(arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview(), file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    command, *rest = arguments
    if command == "--version":
        from importlib.metadata import version

        print(f"firststep {version('firststep')}")
        return 0
    if command not in COMMANDS:
        raise unknown("command", command, COMMANDS)
    if (
        command not in SHARED
        and "TORCHELASTIC_RUN_ID" in os.environ
        and os.environ.get("WORLD_SIZE", "1") != "1"
    ):
        raise FirststepError(
            f"firststep {command} runs in one process: start it without torchrun, which is for "
            f"{' and '.join(SHARED)}"
        )

    with extra("cli", "the command line"):
        from firststep.cli.arguments import call

        if own_process:
            from firststep.cli.process import prepare

            prepare()
        import_user_modules(modules)
        module = importlib.import_module(f"firststep.cli.{command}")
    if own_process:
        interrupts_as_usual()
    if hasattr(module, "main"):  # the command parses its arguments itself
        module.main(rest)
        return 0
    return call(getattr(module, command), f"firststep {command}", rest) or 0


def _split_imports(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the modules named by ``--import`` before the command, and the remaining arguments."""
    modules = []
    rest = list(arguments)
    while rest and (rest[0] == "--import" or rest[0].startswith("--import=")):
        flag, _, value = rest.pop(0).partition("=")
        if not value:
            if not rest:
                raise FirststepError(f"{flag} takes the name of a module")
            value = rest.pop(0)
        modules += [name for name in value.split(",") if name]
    return modules, rest


def _overview() -> str:
    width = max(map(len, COMMANDS))
    return "\n".join(
        [
            DESCRIPTION,
            "",
            "usage: firststep [--import MODULE] COMMAND [--help] [--debug] ...",
            "",
            *(f"  {name:{width}}  {what}" for name, what in COMMANDS.items()),
            "",
            "--help after a command explains it; --debug shows where an error came from; --version.",
            "--import MODULE, before the command and as often as needed, imports a module of your own (the",
            "working folder is searched first). It can register methods, backbones, datasets, losses,",
            "metrics and experiments, which the command then knows by name. FIRSTSTEP_IMPORT=a,b in the",
            "environment does the same.",
        ]
    )
