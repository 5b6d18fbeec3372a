"""Process-wide settings that commands make, and those that they leave alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warm_cli import WarmCommands

# A user's module is imported after the process was prepared.
SHOW = "import os\nprint(os.environ.get('TORCHINDUCTOR_CACHE_DIR'))\n"
PROGRAM = """
import os
from firststep.cli import main
main(["parameters", "--help"])
print(os.environ.get("TORCHINDUCTOR_CACHE_DIR"))
"""


def clean(**environment: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
    return {**kept, **environment}


def cache_of_compiled_code(warm: WarmCommands, folder: Path, **environment: str) -> str:
    (folder / "show.py").write_text(SHOW)
    done = warm.run(["--import", "show", "parameters", "--help"], cwd=folder, env=clean(**environment))
    done.check_returncode()
    return done.stdout.splitlines()[0]


def test_compiled_code_is_kept_in_the_users_cache(warm: WarmCommands, tmp_path: Path) -> None:
    folder = Path(cache_of_compiled_code(warm, tmp_path, FIRSTSTEP_CACHE=str(tmp_path)))
    assert folder.parent == tmp_path
    assert folder.name.startswith("compiled-")
    assert folder.is_dir()


def test_the_users_choice_stays(warm: WarmCommands, tmp_path: Path) -> None:
    mine = str(tmp_path / "mine")
    assert cache_of_compiled_code(warm, tmp_path, TORCHINDUCTOR_CACHE_DIR=mine) == mine


def test_a_cache_that_cannot_be_made_is_left_to_torch(warm: WarmCommands, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = str(tmp_path / "file" / "cache")
    assert cache_of_compiled_code(warm, tmp_path, FIRSTSTEP_CACHE=cache) == "None"


def test_a_program_that_calls_a_command_is_left_as_it_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=clean(FIRSTSTEP_CACHE=str(tmp_path)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "None"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals on Windows")
def test_a_wrong_flag_on_a_terminal_is_one_line_without_colour_codes() -> None:
    """tyro colours its message for a terminal; we take the message apart."""
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "firststep", "train", "glyphs", "--compile", "False"]
    done = subprocess.run(command, stdin=theirs, stdout=theirs, stderr=theirs, timeout=120)
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert done.returncode == 2
    assert said.startswith("firststep: 'False' is not understood here (")
    assert said.count("\n") == 1
    assert "\x1b" not in said
    assert "x1b" not in said
