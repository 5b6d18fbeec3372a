"""``python -m release [--extras NAME ...]``: everything that must hold before a release.

Builds the two files into dist/, checks their metadata and contents, installs the wheel into empty
environments in a temporary folder and uses it there. An environment of its own for the wheel alone and for
[cli]; every other extra is installed into one that borrows the packages of the first.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

import firststep
from release.distribution import (
    ROOT,
    Distribution,
    ReleaseError,
    build,
    check_contents,
    run,
    wheel_files,
)
from release.environments import empty_environment, extras
from release.use import FIRST_USE, check_demo, check_library


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--extras", nargs="*", default=extras(), choices=extras(), help="default all")
    parser.add_argument("--files", action="store_true", help="list the wheel's files with their sizes")
    parser.add_argument("--tag", help="of the commit: must be v and the version")
    options = parser.parse_args()
    try:
        if options.tag not in (None, f"v{firststep.__version__}"):
            raise ReleaseError(
                f"the tag {options.tag} is not v{firststep.__version__}, the package's version"
            )
        built = _build()
        if options.files:
            for name, size in sorted(wheel_files(built.wheel).items()):
                print(f"{size:>12,} {name}")
        with tempfile.TemporaryDirectory(prefix="firststep-release-") as folder:
            _use(built, Path(folder), options.extras)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(f"ready: {built.wheel.relative_to(ROOT)}, {built.sdist.relative_to(ROOT)}")
    return 0


def _build() -> Distribution:
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    built = build(ROOT / "dist")
    run([sys.executable, "-m", "twine", "check", "--strict", str(built.wheel), str(built.sdist)])
    check_contents(built, firststep.__version__)
    for file in (built.wheel, built.sdist):
        print(f"built {file.name}, {file.stat().st_size / 2**20:.1f} MB")
    print(f"{len(wheel_files(built.wheel))} files in the wheel, as in git; twine check --strict passed")
    return built


def _use(built: Distribution, folder: Path, chosen: list[str]) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    wheel = str(built.wheel)
    start = time.perf_counter()
    alone = empty_environment(folder / "alone")
    alone.install(wheel)
    check_library(alone, elsewhere, firststep.__version__)
    alone.call("-m", "pip", "uninstall", "--quiet", "--yes", "firststep")  # the others borrow what is left
    print(f"without extras: installed, imported, used, {time.perf_counter() - start:.0f} s")
    for name in chosen:
        start = time.perf_counter()
        environment = empty_environment(folder / name)
        if name != "cli":
            environment.borrow(alone.packages)
        environment.install(f"{wheel}[{name}]")
        environment.call("-c", FIRST_USE[name], folder=elsewhere)
        check_library(environment, elsewhere, firststep.__version__)
        if name == "cli":
            print(check_demo(environment, elsewhere))
        print(f"[{name}]: installed and used, {time.perf_counter() - start:.0f} s", flush=True)
        shutil.rmtree(environment.folder)


if __name__ == "__main__":
    raise SystemExit(main())
