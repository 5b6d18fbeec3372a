"""``python -m docsite COMMAND``."""

from __future__ import annotations

import argparse
import sys

from docsite.build import BuildFailed, build
from docsite.paths import ROOT
from docsite.write import write


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docsite", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the site to site/, strictly")
    commands.add_parser("write", help="fill the generated parts of the pages anew")
    options = parser.parse_args()
    if options.command == "write":
        for path in write():
            print(path.relative_to(ROOT))
    if options.command == "build":
        try:
            built = build(ROOT / "build" / "site-source", ROOT / "site")
        except BuildFailed as error:
            print(error, file=sys.stderr)
            return 1
        print(
            f"{built.pages} pages, {built.size / 2**20:.1f} MB, {built.seconds:.1f} s: open site/index.html"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
