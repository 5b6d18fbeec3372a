"""``python -m docsite COMMAND``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from docsite import home_figure, readability, tutorials
from docsite.build import BuildFailed, build
from docsite.paths import ROOT
from docsite.write import write


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docsite", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the site to site/, strictly")
    commands.add_parser("write", help="fill the generated parts of the pages")
    commands.add_parser("figure", help="draw the figure of the home page")
    outputs = commands.add_parser("tutorials", help="run tutorials and write their outputs and pictures")
    outputs.add_argument("numbers", nargs="*", help="which; default all")
    read = commands.add_parser("readability", help="words per sentence of every page, or its long sentences")
    read.add_argument("page", nargs="?", type=Path, help="print the long sentences of this page")
    options = parser.parse_args()
    if options.command == "tutorials":
        for page in tutorials.tutorials():
            if not options.numbers or page.name.partition("-")[0] in options.numbers:
                start = time.perf_counter()
                tutorials.write(page)
                print(f"{page.relative_to(ROOT)}: {time.perf_counter() - start:.0f} s")
    if options.command == "readability":
        print("\n".join(readability.long_sentences(options.page)) if options.page else readability.table())
    if options.command == "figure":
        home_figure.write()
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
