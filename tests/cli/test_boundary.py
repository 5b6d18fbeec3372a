"""Whatever goes wrong is one line and exit code 2, whatever the streams, the locale or the moment."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from firststep.cli import boundary, main
from firststep.cli.boundary import as_flags, describe, within_boundary
from firststep.errors import FirststepError
from firststep.training import Run
from runs import tiny_run

Captured = pytest.CaptureFixture[str]
FEW = ["--episodes", "3", "--steps", "0", "1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return tiny_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def one_line(arguments: Sequence[str], capsys: Captured) -> str:
    """Return the line with which a command is refused."""
    assert main(list(arguments)) == 2
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if not line.endswith("...")]  # progress
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("firststep: ")
    assert "internal error" not in lines[0]
    return lines[0].removeprefix("firststep: ")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (FirststepError("pass `skip_broken=True`"), "pass --skip-broken"),
        (MemoryError(), "there is not enough memory"),
        (RuntimeError("[enforce fail] can't allocate memory: you tried"), "there is not enough memory"),
        (FileNotFoundError(2, "No such file or directory", "a/b"), "a/b: No such file or directory"),
        (KeyError("x\ny"), "internal error (KeyError: "),
        (FirststepError("a\nb\x1b[2J"), "a b\\x1b[2J"),
    ],
)
def test_any_exception_is_one_line(error: Exception, line: str, capsys: Captured) -> None:
    def command() -> int:
        raise error

    assert within_boundary(command, own_process=False) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"firststep: {line}")
    assert said.count("\n") == 1


def test_debug_shows_where() -> None:
    def command() -> int:
        raise FirststepError("wrong")

    with pytest.raises(FirststepError):
        within_boundary(command, debug=True, own_process=False)


def test_options_of_the_library_are_flags_of_the_command() -> None:
    assert as_flags("pass `skip_broken=True`, `cache`, or `engine=stepwise`") == (
        "pass --skip-broken, --cache, or --engine stepwise"
    )
    assert (
        as_flags("resume it with `firststep train --resume x`")
        == "resume it with `firststep train --resume x`"
    )
    assert describe(ValueError()) == "internal error (ValueError); please report it, with what --debug shows"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["evaluate", "x", "--stepz", "3"], "unknown flag --stepz; did you mean --steps?"),
        (["paper", "show", "table4", "--only", "x"], "unknown flag --only; the subcommand run has it"),
        (["evaluate", "x", "--episodes", "many"], "--episodes many: expected INT"),
        (
            ["evaluate", "x", "--split=tests"],
            "--split tests: did you mean test? choose from test, val, train",
        ),
        (["evaluate", "x", "y"], "'y' is not understood here"),
        (["evaluate"], "RUN is missing (Folder of a run, or one of builtin:glyphs, "),
        (["train", "--filters"], "--filters needs a value"),
        (["train", "--filters", "x"], "--filters x: expected INT"),
        (["train", "--compile", "maybe"], "'maybe' is not understood here"),
        (["train", "--filters", "0"], "--filters must be at least 1, not 0"),
        (["train", "--seed", str(2**65)], "--seed must be at most"),
        (["train", "--threads", "1000000"], "--threads must be at most 1024"),
        (["train", "--backbone", "conv5"], "--backbone conv5 is unknown; did you mean conv6?"),
        (["train", "--resume"], "--resume needs a value"),
        (["paper", "rum"], "unknown subcommand 'rum'"),
        (["paper"], "name a subcommand"),
        (["paper", "run", "table2", "--foo"], "unknown flag --foo"),
        (["trian"], "unknown command 'trian'; did you mean train?"),
    ],
)
def test_wrong_flags_are_one_line(arguments: list[str], line: str, here: Path, capsys: Captured) -> None:
    assert one_line(arguments, capsys).startswith(line)


@pytest.mark.parametrize("recipe", [[], ["glyphs"]])  # compile is off in the first and on in the second
def test_truth_values_have_both_forms(recipe: list[str], here: Path, capsys: Captured) -> None:
    for flag in ("--compile", "--no-compile"):
        # Refused for its backbone, which is looked at after all flags were understood.
        assert one_line(["train", *recipe, flag, "--backbone", "conv5"], capsys).startswith("--backbone")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["adapt", "builtin:glyphs", "--support", ".", "--out", "file"], "cannot write to the folder file"),
        (["compare", "RUN", *FEW, "--out", "file/x"], "cannot write to the folder file/x"),
        (["evaluate", "RUN", *FEW, "--out", "file/x"], "cannot write to the folder file/x"),
        (["diagnose", "RUN", "--plot", "file/x.png"], "cannot write to the folder file"),
        (["diagnose", "RUN", "--plot", "x.jpeg"], "cannot write x.jpeg: its name must end in .png or .svg"),
        (["diagnose", "RUN", "--plot", "folder.png"], "cannot write folder.png: it is a folder"),
        (["demo", "--out", "file"], "file exists already"),
        (["train", "--out", "file/x"], "cannot write to the folder file/x"),
        (["paper", "report", "--out", "file/x.html"], "cannot write to the folder file"),
        (["paper", "run", "table2", "--data", "glyphs", "--out", "file"], "cannot write to the folder file"),
    ],
)
def test_outputs_are_tried_before_the_work(
    arguments: list[str], line: str, run: Run, here: Path, capsys: Captured
) -> None:
    (here / "file").write_text("kept")
    (here / "folder.png").mkdir()
    given = [str(run.folder) if argument == "RUN" else argument for argument in arguments]
    assert one_line(given, capsys).startswith(line)
    assert (here / "file").read_text() == "kept"
    assert sorted(path.name for path in here.iterdir()) == ["file", "folder.png"]


def test_a_disk_that_fills_up_leaves_what_was_there(run: Run, here: Path) -> None:
    """No file may get longer than a kilobyte: as far as a program can tell, the disk is full."""
    for number in range(5):
        folder = here / "support" / f"class {number}"
        folder.mkdir(parents=True)
        Image.new("L", (16, 16), 40 * number).save(folder / "one.png")
    (here / "out").mkdir()
    (here / "out" / "adapted.safetensors").write_text("before")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    arguments = ["adapt", str(run.folder), "--support", "support", "--steps", "1", "--out", "out"]
    with firststep(*arguments, preexec_fn=limit) as process:
        said = process.communicate(timeout=240)[1]
    assert process.returncode == 2
    *progress, line = said.splitlines()
    assert (
        line == "firststep: cannot write out/adapted.safetensors: File too large; the old file is unchanged"
    )
    assert all(each.endswith(" ...") for each in progress)
    assert (here / "out" / "adapted.safetensors").read_text() == "before"
    assert [path.name for path in (here / "out").iterdir()] == ["adapted.safetensors"]


def test_a_missing_folder_is_made(run: Run, here: Path) -> None:
    arguments = ["diagnose", str(run.folder), "--tasks", "1", "--subsets", "cls", "--plot", "new/x.svg"]
    assert main(arguments) == 0
    assert (here / "new" / "x.svg").is_file()


MODULES = {
    "raises": "raise RuntimeError('at import')",
    "exits": "import sys; sys.exit(3)",
    "lacking": "net = 3\ndel net",
    "factory": "def net(): raise KeyError('made')",
    "leaver": "def net(): raise SystemExit",
    "nothing": "def net(): return None",
    "plain": "net = 7",
    "forward": "from torch import nn\nclass N(nn.Module):\n    def __init__(s):\n        super().__init__()\n"
    "        s.fc = nn.Linear(4, 5)\n    def forward(s, x): raise LookupError('in forward')\nnet = N()",
    "silent": "from torch import nn\nclass N(nn.Module):\n    def __init__(s):\n        super().__init__()\n"
    "        s.fc = nn.Linear(4, 5)\n    def forward(s, x): return None\nnet = N()",
}


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("raises", "cannot import 'raises:net': RuntimeError: at import"),
        ("exits", "cannot import 'exits:net': SystemExit: 3"),
        ("lacking", "cannot import 'lacking:net': AttributeError"),
        ("absent", "cannot import 'absent:net': No module named 'absent'"),
        ("factory", "factory:net() failed: KeyError: 'made'"),
        ("leaver", "leaver:net() failed: SystemExit"),
        ("nothing", "nothing:net gives a NoneType, not an nn.Module"),
        ("plain", "plain:net() failed: TypeError"),
        ("forward", "forward:net failed on images of shape [25, 1, 16, 16]: LookupError: in forward"),
        ("silent", "silent:net failed on images of shape [25, 1, 16, 16]"),
    ],
)
def test_networks_of_the_user_that_fail(module: str, line: str, here: Path, capsys: Captured) -> None:
    if module in MODULES:
        (here / f"{module}.py").write_text(MODULES[module])
    try:
        assert one_line(["diagnose", f"{module}:net", "--image-size", "16"], capsys).startswith(line)
    finally:
        sys.modules.pop(module, None)


def firststep(*arguments: str, **options: object) -> subprocess.Popen[str]:
    """Start a real process of the command line."""
    settings: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    command = [sys.executable, "-m", "firststep", *arguments]
    return subprocess.Popen(command, text=True, errors="surrogateescape", **settings)  # type: ignore[call-overload,no-any-return]


def test_a_reader_that_leaves_is_no_error() -> None:
    """As in ``firststep data list | head -1``."""
    read, write = os.pipe()
    os.close(read)
    with firststep("data", "list", stdout=write) as process:
        os.close(write)
        assert process.communicate(timeout=240)[1] == ""
    assert process.returncode == 0


def test_output_that_cannot_be_written_is_an_error() -> None:
    with open("/dev/full", "w") as full, firststep("data", "list", stdout=full) as process:
        said = process.communicate(timeout=240)[1]
    assert said == "firststep: cannot write the output: No space left on device\n"
    assert process.returncode == 2


def test_closed_streams_are_no_error() -> None:
    with firststep("data", "list", stdout=None, preexec_fn=lambda: os.closerange(0, 2)) as process:
        assert process.communicate(timeout=240)[1] == ""
    assert process.returncode == 0


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}])
def test_any_locale_and_any_name(locale: dict[str, str], run: Run, here: Path) -> None:
    """Tables have signs that ASCII lacks, and names of files may be no text at all."""
    with firststep("evaluate", str(run.folder), *FEW, "--out", "x", env={**os.environ, **locale}) as process:
        output, said = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert "accuracy" in output
    name = os.fsdecode(b"caf\xe9")
    with firststep("evaluate", name, env={**os.environ, **locale}) as process:
        said = process.communicate(timeout=240)[1]
    assert process.returncode == 2
    assert said == f"firststep: {name} is not a folder; give the folder of a run, or builtin:glyphs\n"


@pytest.mark.parametrize("seconds", [0.0, 0.4, 1.0])
def test_ctrl_c_while_it_starts_is_one_line(seconds: float) -> None:
    """Torch takes seconds to import."""

    def listen() -> None:  # children of a background job inherit that Ctrl-C is ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)

    with firststep("evaluate", "builtin:glyphs", "--episodes", "500", preexec_fn=listen) as process:
        maps = Path(f"/proc/{process.pid}/maps")
        while "libtorch" not in maps.read_text():
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        output, said = process.communicate(timeout=240)
    assert process.returncode == 130
    lines = [line for line in said.splitlines() if not line.endswith("...")]
    assert lines == ["firststep: interrupted; the same command starts again"]
    assert output == ""


def test_a_warning_is_one_line(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    boundary._show_warning("compiling failed,\n continuing", RuntimeWarning, "file.py", 3)
    boundary._show_warning("old", DeprecationWarning, "file.py", 3)
    assert capsys.readouterr().err == "firststep: warning: compiling failed, continuing\n"
