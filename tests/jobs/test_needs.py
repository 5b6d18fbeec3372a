"""What a run is said to need: enough for a real one, and more where there is more to keep."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from firststep import FirststepError
from firststep.jobs import needs
from firststep.jobs.capacity import Capacity
from firststep.training import TrainConfig
from peaks import PEAK
from runs import TINY

# A process of its own: the peak is of the process, whatever it did before.
PROGRAM = (
    PEAK
    + """
import sys
from firststep.training import TrainConfig, train
config = TrainConfig(filters=64, updates=1, meta_batch=1, validation_episodes=2, steps=1, threads=1)
train(config, Path(sys.argv[1]))
print(peak())
"""
)


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss differs between systems")
def test_the_estimate_is_near_the_peak_of_a_real_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "run")], capture_output=True, text=True, check=True
    )
    peak = 1024 * int(done.stdout)
    estimate = needs(TrainConfig(filters=64, meta_batch=1, steps=1, threads=1)).memory_bytes
    assert 0.8 * peak < estimate < 2 * peak


def test_it_grows_with_what_there_is_to_keep() -> None:
    base = TrainConfig(image_size=84, shots=5, queries=16, threads=2)
    least = needs(base)
    assert (least.cpus, least.gpus) == (2, 0)
    for more in (
        {"queries": 32},
        {"filters": 128},
        {"compile": True},
        {"engine": "unrolled"},
        {"subset": "cls+emb"},
        {"subset": "all"},
        {"method": "meta-curvature"},
        {"backbone": "resnet18", "image_size": 224},
    ):
        assert needs(replace(base, **more)).memory_bytes > least.memory_bytes, more
    assert needs(replace(base, steps=50)).memory_bytes < 1.05 * least.memory_bytes + 50 * 4 * 200_000
    unrolled = replace(base, engine="unrolled")
    assert needs(replace(unrolled, steps=10)).memory_bytes > 1.4 * needs(unrolled).memory_bytes
    assert needs(replace(base, device="cuda")).gpus == 1
    assert needs(base, gpu=True).gpus == 1
    with pytest.raises(FirststepError, match="--device gpu is not a device"):
        needs(replace(base, device="gpu"))


def test_as_many_at_once_as_cores_and_memory_allow_but_always_one() -> None:
    capacity = Capacity(at_once=10)
    capacity.cores, capacity.memory = 4, 3 * needs(TINY).memory_bytes
    shares = [capacity.lend(TINY) for _ in range(4)]
    assert [share is not None for share in shares] == [True, True, True, False]  # memory
    assert shares[0] is not None
    capacity.take_back(shares[0])
    assert capacity.lend(replace(TINY, threads=3)) is None  # cores
    assert capacity.lend(TINY) is not None
    alone = Capacity(at_once=1)
    alone.cores, alone.memory = 1, 1
    assert alone.lend(TINY) is not None
    assert alone.lend(TINY) is None


def test_one_run_for_each_gpu() -> None:
    capacity = Capacity(at_once=10)
    capacity.devices = ["2", "5"]
    any_device, numbered = replace(TINY, device="cuda"), replace(TINY, device="cuda:1")
    first = capacity.lend(numbered)
    second = capacity.lend(any_device)
    assert first is not None
    assert second is not None
    assert (first.device, first.sees) == ("5", None)  # it names its own: it must see them all
    assert (second.device, second.sees) == ("2", "2")
    assert capacity.lend(any_device) is None
    capacity.take_back(first)
    again = capacity.lend(any_device)
    assert again is not None
    assert again.device == "5"
