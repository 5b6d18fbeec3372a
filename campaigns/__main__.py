"""Run ``python -m campaigns [kills|fuzz|all]``: print the counts, exit with 1 on any violation."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from campaigns import fuzz, kills, report, runner
from campaigns.report import Result
from campaigns.runner import Planned, RunCase

SHARES = {"fuzz": fuzz.KINDS, "kills": kills.KINDS}
RUN_CASE: dict[str, RunCase] = {"fuzz": fuzz.run_case, "kills": kills.run_case}
CASES = {"fuzz": 10_000, "kills": 1_000}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=__doc__)
    parser.add_argument("campaign", choices=("kills", "fuzz", "all"), nargs="?", default="all")
    parser.add_argument("--cases", type=int, help="number of inputs (10,000) or kills (1,000)")
    parser.add_argument("--kills", type=int, metavar="N", help="with all: number of kills, if not --cases")
    parser.add_argument("--seed", type=int, default=0, help="seed of the campaign: decides its cases")
    parser.add_argument("--kind", action="append", help="only cases of this kind; may be repeated")
    parser.add_argument("--only", metavar="KIND:SEED", help="one case, as a violation names it")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes")
    parser.add_argument("--markdown", action="store_true", help="print the table of counts as Markdown")
    parser.add_argument("--save", metavar="FILE", help="append each result to this file, a line of JSON each")
    parser.add_argument("--verbose", action="store_true", help="print every case as it ends")
    options = parser.parse_args(arguments)
    names = ("fuzz", "kills") if options.campaign == "all" else (options.campaign,)
    planned = _planned(names, options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was found is printed
    found: list[Result] = []
    jobs = min(options.jobs, len(planned))
    try:
        for result in runner.progress(runner.run_all(planned, RUN_CASE, jobs), len(planned)):
            if options.verbose or options.only:
                print(f"{result.again}  {result.count} {result.seconds:.1f} s  {result.what}", flush=True)
            if options.save:
                with open(options.save, "a", encoding="utf-8") as file:
                    print(result.to_line(), file=file)
            found.append(result)
    finally:  # also of a campaign that was interrupted, or has failed itself
        _print(found, names, options.markdown)
    return 1 if any(result.violations for result in found) else 0


def _print(found: list[Result], names: tuple[str, ...], markdown: bool) -> None:
    for line in report.violation_lines(found):
        print(line)
    for name in names:
        mine = [result for result in found if result.campaign == name]
        if mine:
            print(f"\n{name}\n")
            print(report.table(mine, markdown))


def _planned(names: tuple[str, ...], options: argparse.Namespace) -> list[Planned]:
    if options.only:
        kind, _, seed = options.only.rpartition(":")
        name = next((name for name in names if kind in SHARES[name]), None)
        if name is None or not seed.isdecimal():
            sys.exit(f"--only takes KIND:SEED as a violation names it, not {options.only!r}")
        return [Planned(name, kind, int(seed))]
    planned = []
    for name in names:
        shares = {k: s for k, s in SHARES[name].items() if not options.kind or k in options.kind}
        cases = CASES[name] if options.cases is None else options.cases
        if name == "kills" and options.kills is not None:
            cases = options.kills
        if shares:
            planned += runner.plan(name, shares, cases, options.seed)
    if not planned:
        sys.exit("no case is of that kind; the kinds are " + ", ".join(k for n in names for k in SHARES[n]))
    return planned


if __name__ == "__main__":
    sys.exit(main())
