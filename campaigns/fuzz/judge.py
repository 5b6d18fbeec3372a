"""Whether a command or call kept the promises: the one place that says what they are."""

from __future__ import annotations

import re

from campaigns import snapshot
from campaigns.fuzz.case import Case
from campaigns.report import Violation
from campaigns.snapshot import Snapshot
from campaigns.warm import Outcome

PROGRESS = re.compile(
    r"firststep: warning: .*"
    r"|.* \.\.\.$"  # what is being done, where there is no terminal for a bar
    r"|.*: update \d+/\d+, loss .*"  # a line for each validation of a training
    r"|\S+: (waiting|training|testing|failed|done|skipped).*|\d+/\d+ \S+: .*"  # runs of a sweep or of paper
)
"""Lines on standard error that are no errors; all others are the one line of what is wrong."""
NOT_FINITE = re.compile(r"(?<![\w./-])[-+−]?(nan|inf|infinity)(?![\w./-])", re.IGNORECASE)
IN_FIRSTSTEP = re.compile(r'File "[^"]*/src/(firststep/[^"]+)", line (\d+)')


def judge(case: Case, outcome: Outcome, before: Snapshot, after: Snapshot) -> list[Violation]:
    found: list[Violation] = []

    def broken(promise: str, details: str) -> None:
        found.append(Violation(promise=promise, details=details.replace("\n", " ⏎ ")[-600:]))

    errors, output = outcome.stderr, outcome.stdout
    if outcome.timed_out:
        broken("hangs", f"no end after {case.seconds:.0f} s; stderr: {errors[-200:]}")
    elif outcome.status < 0:
        broken(f"dies by signal {-outcome.status}", errors[-400:] or "(no output)")
    elif "Traceback" in errors or "Exception ignored" in errors:
        broken(f"traceback: {_cause(errors)}", f"exit {outcome.status}: {errors[-400:]}")
    elif outcome.status not in case.statuses:
        broken(f"exit status {outcome.status}", errors[-400:] or output[-300:])
    elif outcome.status in (2, 130) and case.stderr == "kept":
        _judge_message(case, outcome, broken)
    if outcome.status == 0 and case.expected == "bad":
        broken("accepts what is wrong", output[-300:])
    if outcome.status == 2 and case.expected == "good":
        broken("refuses what is right", errors[-300:])
    named = NOT_FINITE.search(" ".join(map(str, case.arguments or ())))  # a folder may be called nan
    if outcome.status == 0 and case.finite and not named and NOT_FINITE.search(output):
        line = next(line for line in output.splitlines() if NOT_FINITE.search(line))
        broken("prints a number that is not finite", line.strip())
    if outcome.left_behind:
        broken("leaves a process behind", "; ".join(outcome.left_behind))
    left = snapshot.temporary_files(after, before)
    if left and not outcome.timed_out:  # what is killed cannot clean up
        broken("leaves a temporary file", ", ".join(left[:5]))
    may = tuple(f"a/b/desk/{name}".rstrip("/") for name in case.writes)
    if changed := [name for name in snapshot.lost(before, after) if not _is_below(name, may)]:
        broken("changes or removes what existed", ", ".join(changed[:5]))
    new = [n for n in snapshot.appeared(before, after) if not _is_below(n, may) and not _is_above(n, may)]
    if new := [name for name in new if name not in left]:
        broken("writes what it was not asked to", ", ".join(new[:5]))
    return found


def _judge_message(case: Case, outcome: Outcome, broken) -> None:  # type: ignore[no-untyped-def]
    lines = [line for line in outcome.stderr.splitlines() if line and not PROGRESS.fullmatch(line)]
    if not lines:
        broken("says nothing about what is wrong", f"exit {outcome.status}")
        return
    if lines[-1].startswith("firststep: ") and " differs from the official data: " in lines[-1]:
        lines = lines[-1:]  # all differences stand before the line that sums them up
    if len(lines) > 1:
        broken(f"more than one line: {_shape(lines)}", " | ".join(lines[:12]))
    elif not lines[0].startswith("firststep: "):
        broken(f"not a line of firststep: {_shape(lines)}", lines[0])
    elif "internal error" in lines[0]:
        broken(f"an internal error: {_shape([lines[0].partition('(')[2]])}", lines[0])
    elif len(lines[0]) > 2000:
        broken("an endless line", lines[0][:300])
    elif re.search(r"[\x00-\x08\x0b-\x1f\x7f]", lines[0]):
        broken("control characters in the message", repr(lines[0][-300:]))
    elif outcome.status == 130 and "interrupt" not in lines[0] and "stopped" not in lines[0]:
        broken("an interrupt that does not say so", lines[0])


def _shape(lines: list[str]) -> str:
    """Return what messages of one cause have in common."""
    if any("╭" in line for line in lines):
        return "tyro's box"
    words = re.sub(r"['\"].*?['\"]|/\S+|[\d.e+-]+", "…", lines[0])
    return words[:60]


def _cause(errors: str) -> str:
    """Return the type of the last exception and the innermost line of firststep that it passed."""
    places = IN_FIRSTSTEP.findall(errors)
    last = next((line for line in reversed(errors.splitlines()) if re.match(r"[\w.]+(:|$)", line)), "?")
    where = f" at {places[-1][0]}:{places[-1][1]}" if places else ""
    return f"{last.partition(':')[0]}{where}"


def _is_below(name: str, roots: tuple[str, ...]) -> bool:
    return any(name == root or name.startswith(f"{root}/") for root in roots)


def _is_above(name: str, roots: tuple[str, ...]) -> bool:
    """Return whether a root lies below: a folder for results is made with its parents."""
    return any(root.startswith(f"{name}/") for root in roots)
