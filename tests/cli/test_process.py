"""What the commands set for their own process, and what they leave alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, sys
from firststep.cli import main
sys.argv = ["firststep", "parameters", "--help"]
main({arguments})
print(os.environ.get("TORCHINDUCTOR_CACHE_DIR"))
"""


def cache_of_compiled_code(arguments: str, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(arguments=arguments)],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def test_compiled_code_is_kept_in_the_users_cache(tmp_path: Path) -> None:
    folder = Path(cache_of_compiled_code("", FIRSTSTEP_CACHE=str(tmp_path)))
    assert folder.parent == tmp_path
    assert folder.name.startswith("compiled-")
    assert folder.is_dir()


def test_the_users_choice_stays(tmp_path: Path) -> None:
    mine = str(tmp_path / "mine")
    assert cache_of_compiled_code("", TORCHINDUCTOR_CACHE_DIR=mine) == mine


def test_a_cache_that_cannot_be_made_is_left_to_torch(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert cache_of_compiled_code("", FIRSTSTEP_CACHE=str(tmp_path / "file" / "cache")) == "None"


def test_a_program_that_calls_a_command_is_left_as_it_is(tmp_path: Path) -> None:
    assert cache_of_compiled_code('["parameters", "--help"]', FIRSTSTEP_CACHE=str(tmp_path)) == "None"
