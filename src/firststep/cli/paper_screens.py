"""What ``firststep paper`` shows on a terminal: a result's table, and a plan with its estimate."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from firststep.cli.terminal import console
from firststep.jobs import needs
from firststep.jobs.capacity import Capacity
from firststep.paper.cost import Cost
from firststep.paper.plan import Planned
from firststep.paper.result import Result
from firststep.paper.table import build_table

GIB = 2**30


def print_wide(table: Table) -> None:
    """Numbers are never cut: on a narrow terminal lines are longer than it is."""
    for column in table.columns:
        column.no_wrap = True
    screen = console()
    needed = Console(width=10_000).measure(table).maximum
    Console(highlight=False, soft_wrap=True, width=max(needed, screen.width)).print(table)


def print_result(result: Result) -> None:
    built = build_table(result.experiment, result.rows, result.accuracies, result.gains, decimals=1)
    table = Table(*built.columns, title=result.experiment.title)
    for column in table.columns[2:]:
        column.justify = "right"
    for number, line in enumerate(built.lines):
        if number and line[0] and not line[0].startswith(" "):
            table.add_section()
        table.add_row(*line)
    print_wide(table)
    for name, text in result.facts.items():
        console().print(f"{name}: {text}", markup=False)


def print_plan(planned: Sequence[Planned], costs: dict[str, Cost | str]) -> None:
    """Every run with its state, whom it serves and what it takes."""
    table = Table("run", "state", "for", "time", "memory", title="The plan")
    total, unknown = 0.0, 0
    for each in planned:
        state, cost = each.state, costs.get(each.job.name)
        time = memory = ""
        if isinstance(cost, Cost):
            seconds = cost.seconds(each.job)
            total += seconds
            time, memory = duration(seconds), f"{cost.memory / GIB:.1f} GiB"
        elif cost is not None:
            unknown += 1
            time = cost
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
        + f"; this machine runs up to {_at_once(left)} at once. An estimate: one task of each form of "
        "run was timed on this machine as it is now, without compiling, and multiplied."
    )
    if any(each.job.config.backbone.startswith("resnet") for each in left):
        screen.print("ResNets are slow on a CPU; --only conv leaves them out.")


def _at_once(left: Sequence[Planned]) -> int:
    cores = Capacity(len(left)).cores
    return max(1, min(len(left), cores // max(needs(each.job.config).cpus for each in left)))


def duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
