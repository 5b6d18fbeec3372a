"""A process alone, and what is decided before processes join."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from firststep import FirststepError
from firststep.distributed import Team, join
from firststep.distributed.launch import threads_per_process
from firststep.distributed.process_group import lost_peers_explained
from firststep.training import check_every_rank_has_tasks
from firststep.utils import available_cores
from runs import TINY


def test_a_team_of_one_does_everything_itself() -> None:
    with join() as team:
        assert team.is_rank0
        assert list(team.share(range(3, 8))) == [3, 4, 5, 6, 7]
        rows = np.arange(6.0).reshape(3, 2)
        assert team.gather(rows, 3) is rows
        assert team.any(True)
        assert not team.any(False)
        team.barrier()
        assert team.on_rank0(lambda: "done") == team.on_all_ranks(lambda: "done") == "done"
        total = team.ordered_sum(2)
        total.add({"a": torch.ones(2)})
        total.add({"a": torch.full((2,), 2.0)})
        assert total.result()["a"].tolist() == [3.0, 3.0]


@pytest.mark.parametrize(("size", "count"), [(1, 4), (2, 5), (4, 5), (3, 2)])
def test_work_is_dealt_whole_and_evenly(size: int, count: int) -> None:
    shares = [list(Team(rank, size).share(range(10, 10 + count))) for rank in range(size)]
    assert sorted(number for share in shares for number in share) == list(range(10, 10 + count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_more_ranks_than_tasks_are_refused() -> None:
    check_every_rank_has_tasks(TINY, Team(0, TINY.meta_batch))
    with pytest.raises(FirststepError, match=r"3 processes share 2 tasks .* raise meta_batch"):
        check_every_rank_has_tasks(TINY, Team(0, 3))


def test_an_environment_without_a_launcher_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(FirststepError, match=r"WORLD_SIZE is 2, but .*MASTER_ADDR.* is not set"), join():
        pass


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(FirststepError, match=r"unknown backend 'nccll'; did you mean nccl\?"), join("nccll"):
        pass


def test_threads_are_shared_unless_somebody_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = available_cores()
    assert threads_per_process(1) == 0
    assert threads_per_process(2) == max(1, cores // 2)
    assert threads_per_process(10_000) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # torchrun's own
    assert threads_per_process(2) == max(1, cores // 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads_per_process(2) == 0


def test_a_lost_process_is_one_clear_line() -> None:
    line = r"has ended or cannot be reached \(Connection closed by peer\)"
    with pytest.raises(FirststepError, match=line), lost_peers_explained():
        raise RuntimeError("[/gloo/tcp/pair.cc:5] Connection closed by peer. See the logs\nmore")
