"""``firststep check``: check the results and the speed of firststep on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from firststep.cli.progress import progress_bar
from firststep.cli.terminal import console, print_wide
from firststep.machine_check import MachineReport, check_machine
from firststep.training import choose_device
from firststep.utils import Table, check_file_writable, write_json

WRONG = 1


def check(
    *,
    device: str = "auto",
    compile: bool = True,
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE.json")] = None,
) -> int:
    """Check this machine: every engine against a float64 reference, then speed beside plain autograd.

    It takes one to two minutes, mostly for compiling. The exit status is 1 if a check fails. Please attach
    the file of ``--json`` to a problem report.

    Args:
        device: Device: auto (cuda if there is one, else cpu), cpu, cuda, cuda:1.
        compile: Also check the compiled engine, which needs a C++ compiler on a CPU.
        json: File for the report as JSON.
    """
    if json is not None:
        check_file_writable(json, ".json")
    chosen = choose_device(device)
    with progress_bar() as progress:
        report = check_machine(chosen, compile=compile, progress=progress)
    _show(report)
    if json is not None:
        write_json(json, report.to_json())
        console().print(f"written: {json}")
    return 0 if report.passed else WRONG


def _show(report: MachineReport) -> None:
    screen = console()
    machine = report.machine
    screen.print(
        f"firststep {machine['firststep']}, torch {machine['torch']}, Python {machine['python']}, "
        f"device {report.device}"
    )
    screen.print(machine["machine"])
    table = Table(["check", "found", "expected", ""], left_aligned=3)
    for each in report.checks:
        table.add_row(each.name, each.found, each.wanted, "ok" if each.passed else "WRONG")
    print_wide(table)
    speed = Table(["one meta-gradient, Conv4-32, 28 px", "seconds", "times as fast", "peak, MiB"])
    plain = report.seconds["plain autograd"]
    for name, seconds in report.seconds.items():
        peak = f"{report.megabytes[name]:.0f}" if name in report.megabytes else ""
        ratio = "" if name.startswith("first call") else f"{plain / seconds:.1f}"
        speed.add_row(name, f"{seconds:.3f}", ratio, peak)
    print_wide(speed)
    wrong = [each.name for each in report.checks if not each.passed]
    screen.print("nothing is wrong" if not wrong else f"WRONG: {'; '.join(wrong)}")
