"""Checks of a team in a process of a real launch; test_torchrun.py runs it under torchrun."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from firststep.distributed import Team, join
from firststep.distributed.process_group import ProcessGroupTeam
from firststep.errors import FirststepError
from firststep.training import TrainConfig, train


def refused(action: Callable[[], object], part: str) -> None:
    with pytest.raises(FirststepError, match=re.escape(part)):
        action()


def fail_on(rank: int, mine: int) -> int:
    if rank == mine:
        raise FirststepError("no such file")
    return mine


def check_non_finite(out: Path) -> None:
    """Check that all ranks stop at the same update and name the same episode."""
    config = TrainConfig(
        filters=4, image_size=16, shots=1, queries=1, steps=1, meta_batch=5, outer_rate=1e30,
        updates=50, validate_every=1, validation_episodes=2, threads=1,
    )  # fmt: skip
    with join() as team:
        with pytest.raises(
            FirststepError, match=r"not finite at update \d+: training episode \d+"
        ) as stopped:
            train(config, out, team=team)
        assert team.on_rank0(lambda: str(stopped.value)) == str(stopped.value)


def check_team() -> None:
    with join() as team:
        me, size = team.rank, team.size
        assert (me, size) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
        # Results of any number, even fewer than ranks, come together in order.
        for total in (1, size, 2 * size + 1):
            mine = np.array([[number, np.inf] for number in team.share(range(total))]).reshape(-1, 2)
            gathered = team.gather(mine, total)
            assert gathered[:, 0].tolist() == list(range(total))
            assert np.isinf(gathered[:, 1]).all()
        assert team.any(me == size - 1)
        assert not team.any(False)
        check_barrier(team)
        assert team.on_rank0(lambda: {"from": me}) == {"from": 0}
        assert team.on_all_ranks(lambda: me) == me
        # An error of one is an error of all, and says whose it was.
        refused(lambda: team.on_rank0(lambda: fail_on(0, me)), "no such file")
        refused(lambda: team.on_all_ranks(lambda: fail_on(0, me)), "no such file")
        refused(lambda: team.on_all_ranks(lambda: fail_on(1, me)), "rank 1 on")
        # Sums have the bits of a sum in order: terms of very different sizes would show another order.
        for terms in (size, 2 * size + 1):
            values = [term(number) for number in range(terms)]
            expected = values[0]
            for value in values[1:]:
                expected = {name: expected[name] + value[name] for name in expected}
            total = team.ordered_sum(terms)
            for number in team.share(range(terms)):
                total.add(values[number])
            for name, value in total.result().items():
                assert torch.equal(value, expected[name]), name
        # Devices.
        cpu = torch.device("cpu")
        assert team.device(lambda: cpu) == cpu
        nccl = ProcessGroupTeam(local_rank=me, local_size=size, backend="nccl")
        refused(
            lambda: nccl.device(lambda: cpu), "`backend=nccl` exchanges between GPUs, but the device is cpu"
        )
        mixed = torch.device("meta" if me else "cpu")
        refused(lambda: team.device(lambda: mixed), "rank 1 would work on meta and rank 0 on cpu")


def check_barrier(team: Team) -> None:
    """Check that no rank passes before the last one, which is late, has arrived."""
    time.sleep(0.1 * team.rank)
    before = time.monotonic()
    team.barrier()
    times = team.gather(np.array([[before, time.monotonic()]]), team.size)
    assert times[:, 1].min() >= times[:, 0].max()


def term(number: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(number)
    scale = 10.0 ** (number % 3)
    return {
        "matrix": scale * torch.randn(7, 5, generator=generator),
        "scalar": scale * torch.randn((), generator=generator),
    }
