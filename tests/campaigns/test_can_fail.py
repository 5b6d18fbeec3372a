"""A campaign that cannot fail proves nothing: each promise is broken here, on purpose, and noticed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from campaigns import report, runner, snapshot
from campaigns.__main__ import SHARES, main
from campaigns.fuzz.case import Case
from campaigns.fuzz.judge import judge
from campaigns.kills.compare import differences, results
from campaigns.kills.workloads import METHODS, WORKLOADS
from campaigns.report import Result, Violation
from campaigns.warm import Outcome
from firststep import METHODS as REGISTERED

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the campaigns look into /proc")

GOOD = {"status": 0, "stdout": "fine\n", "stderr": "", "seconds": 0.1}
REFUSED = {**GOOD, "status": 2, "stdout": "", "stderr": "reading ...\nfirststep: no such file\n"}


def promises(
    case: Case, outcome: dict[str, object], before: snapshot.Snapshot, after: snapshot.Snapshot
) -> str:
    found = judge(case, Outcome(**outcome), before, after)  # type: ignore[arg-type]
    return "; ".join(violation.promise for violation in found)


@pytest.mark.parametrize("outcome", [GOOD, REFUSED])
def test_what_is_kept_is_no_violation(outcome: dict[str, object]) -> None:
    assert not promises(Case(what="x"), outcome, {b"a": "1"}, {b"a": "1"})


@pytest.mark.parametrize(
    ("changes", "promise"),
    [
        ({"timed_out": True, "status": -9}, "hangs"),
        ({"status": -11}, "dies by signal 11"),
        (
            {"status": 1, "stderr": 'Traceback\n  File "/x/src/firststep/a.py", line 3\nKeyError: 1'},
            "traceback: KeyError at",
        ),
        ({"status": 1, "stderr": "firststep: one line"}, "exit status 1"),
        ({"status": 2, "stderr": "firststep: a\nfirststep: b"}, "more than one line"),
        ({"status": 2, "stderr": "/x.py: UserWarning: w\nfirststep: b"}, "more than one line"),
        ({"status": 2, "stderr": "what is wrong"}, "not a line of firststep"),
        ({"status": 2, "stderr": ""}, "says nothing"),
        ({"status": 2, "stderr": "firststep: \x1b[31mred"}, "control characters"),
        ({"stdout": "accuracy nan %"}, "not finite"),
        ({"stdout": "│ cls │ inf │"}, "not finite"),
        ({"left_behind": ["python"]}, "leaves a process"),
    ],
)
def test_what_is_seen_of_a_command(changes: dict[str, object], promise: str) -> None:
    assert promise in promises(Case(what="x"), {**GOOD, **changes}, {}, {})


def test_words_that_only_look_like_numbers_are_none() -> None:
    assert not promises(Case(what="x"), {**GOOD, "stdout": "written: /nan/inf.png, banana, info"}, {}, {})


@pytest.mark.parametrize(
    ("after", "promise"),
    [
        ({}, "changes or removes what existed"),
        ({b"a": "2"}, "changes or removes what existed"),
        ({b"a": "1", b"escaped": "x"}, "writes what it was not asked to"),
        ({b"a": "1", b"a/b/desk/out/.x.json.abcd1234.tmp": "x"}, "leaves a temporary file"),
    ],
)
def test_what_is_seen_of_files(after: snapshot.Snapshot, promise: str) -> None:
    case = Case(what="x", writes=("out",))
    assert promise in promises(case, GOOD, {b"a": "1"}, after)
    assert not promises(case, GOOD, {b"a": "1"}, {b"a": "1", b"a/b/desk/out/x.json": "x"})


def test_what_is_expected_is_checked() -> None:
    assert "accepts what is wrong" in promises(Case(what="x", expected="bad"), GOOD, {}, {})
    assert "refuses what is right" in promises(Case(what="x", expected="good"), REFUSED, {}, {})


def test_results_are_compared_bit_by_bit(tmp_path: Path) -> None:
    for name in ("run/metrics.jsonl", "run/sessions.json", "run/tensorboard/events", "run/.lock"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    before = results(tmp_path)
    assert set(before) == {"run/metrics.jsonl"}
    (tmp_path / "run/metrics.jsonl").write_text("2")
    (tmp_path / "run/more.json").write_text("2")
    found = results(tmp_path)
    assert differences(before, found) == ["run/metrics.jsonl differs", "run/more.json should not be there"]
    assert differences(found, {}) == ["run/metrics.jsonl is missing", "run/more.json is missing"]


def test_every_method_is_killed() -> None:
    assert set(METHODS) == set(REGISTERED)
    assert set(SHARES["kills"]) == set(WORKLOADS)


def fake(kind: str, seed: int, *_: object) -> Result:
    broken = [Violation(promise="hangs", details="no end")] if seed % 2 else []
    return Result(campaign="fuzz", kind=kind, seed=seed, what="a case", count="accepted", violations=broken)


def run_with(case: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    def run_all(planned: list[runner.Planned], *_: object) -> list[Result]:
        return [case(each.kind, each.seed) for each in planned]

    monkeypatch.setattr(runner, "run_all", run_all)
    return main(["fuzz", *arguments])


def test_a_violation_is_printed_with_its_seed_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_with(fake, monkeypatch, "--only", "images:7") == 1
    shown = capsys.readouterr().out
    assert "VIOLATION hangs (1 cases)" in shown
    assert "python -m campaigns fuzz --only images:7" in shown
    assert run_with(fake, monkeypatch, "--only", "images:8") == 0
    assert "VIOLATION" not in capsys.readouterr().out
    assert run_with(fake, monkeypatch, "--cases", "40", "--markdown") == 1
    assert "| all | 40 | 40 |" in capsys.readouterr().out


def test_a_plan_has_all_kinds_and_is_a_function_of_its_seed() -> None:
    shares = {"a": 1, "b": 3}
    plan = runner.plan("fuzz", shares, 40, 1)
    assert plan == runner.plan("fuzz", shares, 40, 1)
    assert plan != runner.plan("fuzz", shares, 40, 2)
    assert [sum(each.kind == kind for each in plan) for kind in shares] == [10, 30]
    assert len(set(plan)) == 40


def test_a_result_survives_the_way_between_processes() -> None:
    result = fake("images", 7)
    assert report.Result.from_line(result.to_line()) == result


BROKEN = """
import os, signal, subprocess, sys, time
what = os.environ["BROKEN"]
if what == "process":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
elif what == "hang":
    time.sleep(60)
elif what == "signal":
    os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_the_warm_process_sees_what_its_children_do(tmp_path: Path) -> None:
    """Run in a separate process, because pytest has threads."""
    import subprocess

    (tmp_path / "broken.py").write_text(BROKEN)
    program = f"""
from pathlib import Path
import os
from campaigns import warm
from campaigns.processes import adopt_orphans
adopt_orphans()
warm.import_everything()
for what in ("process", "hang", "signal", "full"):
    environment = {{**os.environ, "BROKEN": what}}
    surroundings = warm.Surroundings(
        cwd=Path({str(tmp_path)!r}), environment=environment, stdout="full" if what == "full" else "kept")
    arguments = ["--version"] if what == "full" else ["--import", "broken", "parameters", "--help"]
    outcome = warm.run(warm.command(arguments), surroundings, seconds=10, grace=0.5)
    print(what, outcome.status, outcome.timed_out, len(outcome.left_behind))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    lines = done.stdout.splitlines()
    assert lines[:3] == ["process 0 False 1", "hang -9 True 0", "signal -11 False 0"], done.stderr
    assert lines[3].split()[1] != "0"  # nothing could be printed
