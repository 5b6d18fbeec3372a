"""``pip install firststep`` is enough for the import; everything else names the extra that it needs."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from helpers.import_blocker import DISTRIBUTIONS, base_packages, run_without

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
EXTRAS = (
    "PIL",
    "fontTools",
    "matplotlib",
    "pandas",
    "platformdirs",
    "pooch",
    "ray",
    "rich",
    "starlette",
    "tensorboard",
    "tyro",
    "uvicorn",
)

LIBRARY = """
import torch
import firststep as fs

features = torch.randn(10, 16, requires_grad=True)
labels = torch.arange(5).repeat_interleave(2)
fs.conditioning_loss(features, torch.nn.Linear(16, 5)(features), labels).backward()
assert features.grad.isfinite().all()
for name in fs.__all__:
    getattr(fs, name)
"""

META_LEARNER = """
import torch
import firststep as fs

labels = torch.arange(5).repeat_interleave(2)
task = (torch.randn(10, 3, 32, 32), labels, torch.randn(10, 3, 32, 32), labels)
meta = fs.MetaLearner(fs.build_backbone("conv4", filters=4, image_size=32), fs.maml(rate=0.05), steps=1)
loss = meta([task])
loss.backward()
assert meta.adapt(task[0], labels)(task[2]).shape == (10, 5)
"""


def test_the_blocker_blocks_what_it_should() -> None:
    assert {"torch", "numpy", "safetensors"} <= base_packages()
    assert not base_packages() & set(EXTRAS)
    assert set(EXTRAS) <= set(DISTRIBUTIONS)  # all are installed here: blocking them means something


@pytest.mark.parametrize("program", [LIBRARY, META_LEARNER], ids=["loss", "meta-learner"])
def test_the_library_needs_no_extra(program: str) -> None:
    done = run_without(program)
    assert done.returncode == 0, done.stderr


def test_the_import_loads_no_extra_where_all_are_installed() -> None:
    program = "import firststep, sys; print(sorted({name.partition('.')[0] for name in sys.modules}))"
    done = run_without(program, extras_too=tuple(DISTRIBUTIONS))
    assert done.returncode == 0, done.stderr
    loaded = set(eval(done.stdout)) - set(sys.stdlib_module_names)
    assert not loaded & set(EXTRAS)
    assert "firststep" in loaded


PACKAGES = """
import importlib

for package in {packages!r}:
    try:
        importlib.import_module("firststep." + package)
    except ImportError as error:
        print(package, "|", error)
    else:
        print(package, "| fine")
"""


def test_a_room_names_the_extra_that_it_needs() -> None:
    packages = ["data", "evaluation", "training", "jobs", "paper"]
    done = run_without(PACKAGES.format(packages=packages))
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" | ", 1) for line in done.stdout.splitlines())
    assert list(said) == packages
    needy = {package: line for package, line in said.items() if line != "fine"}
    assert {"data", "training"} <= set(needy)
    for line in needy.values():
        assert line.startswith("firststep.")
        assert line.endswith(": pip install 'firststep[cli]'")


COMMAND = """
import sys
from firststep.cli import main
sys.argv = ["firststep", *{arguments!r}]
raise SystemExit(main())
"""


@pytest.mark.parametrize("present", [(), ("tyro", "docstring_parser", "typeguard")])
def test_a_command_without_its_extra_is_one_line(present: tuple[str, ...]) -> None:
    done = run_without(COMMAND.format(arguments=["train", "glyphs"]), extras_too=present)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("firststep: ")
    assert line.endswith(": pip install 'firststep[cli]'")
    if not present:
        assert line == "firststep: the command line needs tyro: pip install 'firststep[cli]'"


def test_the_page_without_its_extra_is_one_line() -> None:
    others = tuple(name for name in DISTRIBUTIONS if name not in ("starlette", "uvicorn", "multipart"))
    done = run_without(COMMAND.format(arguments=["page", "--no-open"]), extras_too=others)
    assert done.returncode == 2
    assert done.stderr == "firststep: firststep page needs starlette: pip install 'firststep[page]'\n"


def test_help_needs_no_extra() -> None:
    done = run_without(COMMAND.format(arguments=["--help"]))
    assert done.returncode == 0, done.stderr
    assert "usage: firststep" in done.stdout


def test_declared_dependencies_are_what_the_blocker_lets_through() -> None:
    names = {line.partition(">")[0] for line in PROJECT["dependencies"]}
    assert names == {"torch", "numpy", "safetensors"}


def test_dev_brings_every_other_extra() -> None:
    extras = PROJECT["optional-dependencies"]
    (own,) = [line for line in extras["dev"] if line.startswith("firststep[")]
    assert set(own.removeprefix("firststep[").removesuffix("]").split(",")) == set(extras) - {"dev"}


def test_the_page_on_installing_has_every_extra() -> None:
    page = (Path(__file__).parents[2] / "docs" / "install.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert named == set(PROJECT["optional-dependencies"]) - {"dev"}
    for name, lines in PROJECT["optional-dependencies"].items():
        assert name == "cli" or lines[0].startswith("firststep["), name
