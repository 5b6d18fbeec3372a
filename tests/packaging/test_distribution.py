"""The wheel and the sdist: exactly the package's files, usable in an empty environment outside the checkout.

``make release-check`` does the same with everything downloaded and with every extra.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import firststep
from release.distribution import Distribution, ReleaseError, build, check_contents, run, wheel_files
from release.environments import Environment, empty_environment, extras
from release.use import FIRST_USE, check_demo, check_library

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout, or no git")
    return build(tmp_path_factory.mktemp("dist"), isolated=False)


@pytest.fixture(scope="module")
def installed(built: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Install the wheel in a new environment that borrows its dependencies from this one."""
    environment = empty_environment(tmp_path_factory.mktemp("environment") / "venv", pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(environment.python), "install", "--quiet"]
    run([*pip, "--no-deps", "--no-index", "--disable-pip-version-check", str(built.wheel)])
    environment.borrow(Path(sysconfig.get_path("purelib")))
    return environment


def test_wheel_and_sdist_hold_the_package_and_nothing_else(built: Distribution) -> None:
    check_contents(built, firststep.__version__)
    files = wheel_files(built.wheel)
    for needed in ("py.typed", "page/static/index.html", "models/glyphs/checkpoints/best.safetensors"):
        assert files.get(f"firststep/{needed}") is not None, needed
    assert "firststep/metagradient/compiler/winograd.cpp" in files


@pytest.mark.parametrize("change", ["missing", "extra"])
def test_a_wheel_with_other_files_is_refused(built: Distribution, tmp_path: Path, change: str) -> None:
    wheel = tmp_path / built.wheel.name
    with zipfile.ZipFile(built.wheel) as source, zipfile.ZipFile(wheel, "w") as target:
        for name in source.namelist():
            if change == "extra" or name != "firststep/py.typed":
                target.writestr(name, source.read(name))
        if change == "extra":
            target.writestr("tests/secret.py", "")
    said = "lacks firststep/py.typed" if change == "missing" else "has tests/secret.py, which git does not"
    with pytest.raises(ReleaseError, match=said):
        check_contents(Distribution(wheel, built.sdist), firststep.__version__)
    with pytest.raises(ReleaseError, match=r"are not of version 9\.9\.9"):
        check_contents(built, "9.9.9")


def test_the_metadata_renders_on_an_index(built: Distribution) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", str(built.wheel), str(built.sdist)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_the_library_runs_from_the_wheel(installed: Environment, tmp_path: Path) -> None:
    check_library(installed, tmp_path, firststep.__version__)


def test_the_demo_runs_from_the_wheel_outside_the_checkout(installed: Environment, tmp_path: Path) -> None:
    said = check_demo(installed, tmp_path)
    assert "Just trained, 20 updates" in said
    assert "Shipped with firststep, 600 updates" in said


def test_an_environment_that_finds_the_checkout_is_noticed(installed: Environment, tmp_path: Path) -> None:
    """`check_library` must detect that the sources are used instead of the wheel."""
    copy = tmp_path / "venv"
    shutil.copytree(installed.folder, copy, symlinks=True)
    shutil.rmtree(Environment(copy).packages / "firststep")
    (Environment(copy).packages / "borrowed.pth").write_text(
        f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n"
    )
    with pytest.raises(ReleaseError, match="was imported from"):
        check_library(Environment(copy), tmp_path, firststep.__version__)


def test_every_extra_has_its_first_use() -> None:
    assert set(FIRST_USE) == set(extras())
