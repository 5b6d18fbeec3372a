"""The estimate of a run's resources, against real runs, and what fits on a machine at once."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from firststep import FirststepError
from firststep.data import open_dataset
from firststep.jobs import Capacity, estimate_resources
from firststep.training import TrainConfig
from peaks import PEAK
from runs import TINY

# A process of its own: the peak is of the process, whatever it did before.
PROGRAM = (
    PEAK
    + """
import json, sys
from firststep.training import TrainConfig, train
train(TrainConfig(**json.loads(sys.argv[2])), Path(sys.argv[1]))
print(peak())
"""
)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss differs between systems")
@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 8, "memory": 0},  # saves none
        {"steps": 8, "memory": 4000},  # saves all
    ],
)
def test_the_estimate_is_near_the_peak_of_a_real_run(changes: dict[str, int], tmp_path: Path) -> None:
    settings = {"filters": 64, "updates": 1, "meta_batch": 1, "validation_episodes": 2, "threads": 1}
    settings |= changes
    open_dataset("glyphs")  # so that the measured process finds them: to draw them takes memory of its own
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "run"), json.dumps(settings)]
    peak = 1024 * int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    estimate = estimate_resources(TrainConfig(**settings)).memory_bytes  # type: ignore[arg-type]
    assert 0.85 * peak < estimate < 1.25 * peak


def test_it_grows_with_what_there_is_to_save() -> None:
    base = TrainConfig(image_size=84, shots=5, queries=16, threads=2)
    least = estimate_resources(base)
    assert (least.cpus, least.gpus) == (2, 0)
    for more in (
        {"queries": 32},
        {"filters": 128},
        {"compile": True},
        {"engine": "unrolled"},
        {"memory": 4000},
        {"subset": "cls+emb"},
        {"subset": "all"},
        {"method": "meta-curvature"},
        {"backbone": "resnet18", "image_size": 224},
    ):
        assert estimate_resources(replace(base, **more)).memory_bytes > least.memory_bytes, more
    assert (
        estimate_resources(replace(base, steps=50)).memory_bytes
        < 1.05 * least.memory_bytes + 50 * 4 * 200_000
    )
    assert estimate_resources(replace(base, memory=0)).memory_bytes < least.memory_bytes
    small = replace(base, image_size=32)  # whose steps all fit in the default
    kept = [estimate_resources(replace(small, steps=steps)).memory_bytes for steps in (1, 3, 5, 7)]
    assert kept[1] - kept[0] == kept[2] - kept[1] > 10 * (kept[3] - kept[2])
    unrolled = replace(base, engine="unrolled")
    assert (
        estimate_resources(replace(unrolled, steps=10)).memory_bytes
        > 1.4 * estimate_resources(unrolled).memory_bytes
    )
    assert estimate_resources(replace(base, device="cuda")).gpus == 1
    assert estimate_resources(base, gpu=True).gpus == 1
    with pytest.raises(FirststepError, match="`device=gpu` is not a device"):
        estimate_resources(replace(base, device="gpu"))


def test_as_many_at_once_as_cores_and_memory_allow_but_always_one() -> None:
    capacity = Capacity(at_once=10)
    capacity.cores, capacity.memory = 4, 3 * estimate_resources(TINY).memory_bytes
    allocations = [capacity.acquire(TINY) for _ in range(4)]
    assert [each is not None for each in allocations] == [True, True, True, False]  # memory
    assert allocations[0] is not None
    capacity.release(allocations[0])
    assert capacity.acquire(replace(TINY, threads=3)) is None  # cores
    assert capacity.acquire(TINY) is not None
    alone = Capacity(at_once=1)
    alone.cores, alone.memory = 1, 1
    assert alone.acquire(TINY) is not None
    assert alone.acquire(TINY) is None


def test_one_run_for_each_gpu() -> None:
    capacity = Capacity(at_once=10)
    capacity.devices = ["2", "5"]
    any_device, numbered = replace(TINY, device="cuda"), replace(TINY, device="cuda:1")
    first = capacity.acquire(numbered)
    second = capacity.acquire(any_device)
    assert first is not None
    assert second is not None
    assert (first.device, first.visible_device) == ("5", None)  # it names its own: it must see them all
    assert (second.device, second.visible_device) == ("2", "2")
    assert capacity.acquire(any_device) is None
    capacity.release(first)
    again = capacity.acquire(any_device)
    assert again is not None
    assert again.device == "5"
