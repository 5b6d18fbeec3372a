"""Print the tables of ``firststep paper``: a result, and a plan with its estimate."""

from __future__ import annotations

from collections.abc import Sequence

from firststep.cli.terminal import console, print_wide
from firststep.jobs import estimate_resources
from firststep.paper import Cost, ExperimentResult, PlannedRun, duration, how_it_was_made
from firststep.utils import Table, available_cores

GIB = 2**30


def print_result(result: ExperimentResult) -> None:
    """Print the table of a result, and how it was made."""
    print_wide(result.table)
    for name, text in how_it_was_made(result.record, result.cells).items():
        console().print(f"{name}: {text}")


def print_plan(planned: Sequence[PlannedRun], costs: dict[str, Cost | str]) -> None:
    """Print every run with its state, the experiments that need it, time and memory."""
    table = Table(["run", "state", "for", "time", "memory"], title="The plan", left_aligned=3)
    total, unknown = 0.0, 0
    for each in planned:
        state, cost = each.state, costs.get(each.job.name)
        time = ""
        if isinstance(cost, Cost):
            seconds = cost.seconds(each.job)
            total += seconds
            time = duration(seconds)
        elif cost is not None:
            unknown += 1
            time = cost
        memory = f"{estimate_resources(each.job.config).memory_bytes / GIB:.1f} GiB" if cost else ""
        table.add_row(each.job.name, state, ", ".join(each.experiments), time, memory)
    print_wide(table)
    left = [each for each in planned if each.state != "done"]
    shared = sum(len(each.serves) for each in planned) - len(planned)
    screen = console()
    screen.print(f"{len(planned)} runs, {len(planned) - len(left)} done; sharing saves {shared} more")
    if not left:
        return
    screen.print(
        f"in all {duration(total)} of one run after another"
        + (f", without the {unknown} that could not be measured" if unknown else "")
        + f"; this machine runs up to {_at_once(left)} at once. An estimate: one task of each kind of "
        "run was timed on this machine as it is now, without compiling, and multiplied."
    )
    if len({each.job.config.backbone for each in left}) > 1:
        screen.print("--only leaves out rows that take too long, for example --only conv4.")


def _at_once(left: Sequence[PlannedRun]) -> int:
    largest = max(estimate_resources(each.job.config).cpus for each in left)
    return max(1, min(len(left), available_cores() // largest))
