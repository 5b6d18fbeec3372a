"""Importing the package needs numpy and Pillow alone. Other packages of the extra are imported on use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from firststep.data import DATASETS, download_files, open_dataset
from firststep.errors import FirststepError

LATER = ("matplotlib", "fontTools", "filelock", "platformdirs", "pooch", "pandas", "rich", "tyro")


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240)


def test_import_needs_none_of_the_others() -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({LATER!r}))\n"
    done = run(blocked + "import firststep.data; print(*firststep.data.DATASETS)")
    assert done.returncode == 0, done.stderr
    assert "glyphs" in done.stdout.split()


def test_missing_pillow_is_one_clear_line() -> None:
    done = run("import sys; sys.modules['PIL'] = None\nimport firststep.data")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("firststep.data needs PIL: pip install 'firststep[cli]'")


@pytest.mark.parametrize(
    ("package", "action", "says"),
    [
        (
            "filelock",
            lambda folder: open_dataset("glyphs", cache=folder),
            "a lock between processes needs",
        ),
        ("platformdirs", lambda folder: open_dataset("glyphs"), "firststep.data needs"),
        ("matplotlib", lambda folder: open_dataset("glyphs", cache=folder), "glyphs needs"),
        ("fontTools", lambda folder: open_dataset("glyphs", cache=folder), "glyphs needs"),
        ("pooch", lambda folder: download_files(DATASETS["cifar-fs"], folder), "a download needs"),
    ],
)
def test_another_missing_package_is_one_clear_line(
    package: str, action: Callable[[Path], object], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):  # what an earlier test imported
        if name.startswith(("firststep.data.glyphs", "firststep.utils.locks", f"{package}.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(FirststepError, match=rf"^{says} {package}: pip install 'firststep\[cli\]'$"):
        action(tmp_path)
