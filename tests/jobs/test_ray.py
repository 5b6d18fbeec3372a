"""Runs on a real Ray cluster of several nodes on this machine, one of which is killed in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firststep.cli import main
from firststep.evaluation import EvaluationSettings
from firststep.jobs import EvaluationSpec, Job, JobEvent, RayExecutor, run_jobs
from firststep.jobs.ray_cluster import NOTICES_THREAD, ray_connection, without_notices
from firststep.training import train
from firststep.training.checkpoint import saved_update
from firststep.training.loop import Interrupted
from runs import TINY, TINY_FLAGS, same_run

WITHOUT_RAY = """
import sys
class NoRay:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "ray":
            raise ModuleNotFoundError("No module named 'ray'", name="ray")
sys.meta_path.insert(0, NoRay())
from firststep.cli import main
raise SystemExit(main(sys.argv[1:]))
"""


def test_without_ray_the_error_says_what_to_install(tmp_path: Path) -> None:
    """Without Ray everything else works: only the executor is refused."""
    flags = ["train", *TINY_FLAGS, "--sweep", "seed=0", "--executor", "ray", "--out", str(tmp_path / "runs")]
    done = subprocess.run([sys.executable, "-c", WITHOUT_RAY, *flags], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "firststep: the executor ray needs Ray: pip install 'firststep[ray]'\n"


def notice(source: str) -> None:
    """Handle a node's message as Ray's listening thread does."""
    from ray._private.worker import print_to_stdstream

    print_to_stdstream({"lines": ["raylet died"], "pid": source, "is_err": False}, ignore_prefix=False)


def test_notices_that_ray_holds_back_are_not_printed_when_it_leaves(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Like notices of two nodes: Ray writes the first at once, the second when it disconnects."""
    ray = pytest.importorskip("ray", reason="the optional extra ray is not installed")

    def listen() -> None:
        notice("one")
        notice("other")

    with without_notices():
        with ray_connection(ray, "local"):
            thread = threading.Thread(target=listen, name=NOTICES_THREAD)
            thread.start()
            thread.join()
        print("ours")
    out = capfd.readouterr().out
    assert "raylet" not in out
    assert "ours" in out


def test_an_address_where_nobody_listens_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ray", reason="the optional extra ray is not installed")
    address = ["--executor", "ray", "--address", "127.0.0.1:9"]
    assert main(["train", "--out", str(tmp_path / "runs"), "--sweep", "seed=0", *address]) == 2
    assert "no Ray cluster can be reached at --address 127.0.0.1:9" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Start the driver's node, without CPUs for tasks, and two nodes with one CPU each."""
    ray = pytest.importorskip("ray", reason="the optional extra ray is not installed")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # or the other tests would take all the time there is
    # Ray starts its own Pythons, which must find this firststep too.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


# Ray 2.60 leaves open files and sockets of the processes that it started to the garbage collector.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_all_runs_end_as_they_should_though_a_node_dies(
    cluster: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    configs = [replace(TINY, seed=seed, updates=30, validate_every=5) for seed in range(2)]
    spec = EvaluationSpec(name="few", settings=EvaluationSettings(steps=(0, 1), episodes=2))
    jobs = [
        Job(name=f"run {config.seed}", config=config, folder=tmp_path / f"{config.seed}", evaluations=(spec,))
        for config in configs
    ]
    seen: list[JobEvent] = []
    killed: list[Any] = []

    def kill_a_node_when_both_train(event: JobEvent) -> None:
        seen.append(event)
        if not killed and {r.job for r in seen if r.state == "training"} == {"run 0", "run 1"}:
            killed.append(next(iter(cluster.worker_nodes)))
            cluster.remove_node(killed[0], allow_graceful=False)

    failed = run_jobs(jobs, RayExecutor(address=cluster.address), kill_a_node_when_both_train)
    assert failed == {}
    assert killed
    ends = {r.job: r.text for r in seen if r.state == "done"}
    assert sorted(ends.values()) == ["resumed", "trained"]  # the one that was on the dead node, and the other
    assert [r.state for r in seen if r.state == "testing"]
    for job in jobs:
        assert job.is_done()
        same_run(train(job.config, tmp_path / f"here-{job.config.seed}").folder, job.folder)
    assert "raylet" not in capfd.readouterr().out  # no notices of Ray among our output

    # On the node that is left: Ctrl-C makes the worker save, though no validation is due.
    endless = replace(TINY, updates=100_000, validate_every=100_000)
    job = Job(name="endless", config=endless, folder=tmp_path / "endless")

    def interrupt(event: JobEvent) -> None:
        if event.state == "training":
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="stopped with 0 of 1 runs finished; the others are saved"):
        run_jobs([job], RayExecutor(address=cluster.address), interrupt)
    assert saved_update(job.run.checkpoint_path("last")) > 0
