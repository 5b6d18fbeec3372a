"""Tiny training runs for tests: real data, real loop, seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PIL import Image

from firststep.training import Run, TrainConfig, train

TINY = TrainConfig(
    filters=4,
    image_size=16,
    shots=2,
    queries=3,
    rate=0.1,
    steps=2,
    updates=4,
    meta_batch=2,
    validate_every=2,
    validation_episodes=3,
    threads=1,
)
# The same as flags, for the command line.
TINY_FLAGS = [
    *("--filters", "4", "--shots", "2", "--queries", "3", "--rate", "0.1", "--steps", "2"),
    *("--updates", "4", "--meta-batch", "2", "--validate-every", "2", "--validation-episodes", "3"),
    *("--image-size", "16", "--threads", "1"),
]


def tiny_run(folder: Path, **changes: object) -> Run:
    return train(replace(TINY, **changes), folder)  # type: ignore[arg-type]


def width(image: Path) -> int:
    """Return the width of an image file, which must be readable."""
    with Image.open(image) as opened:
        opened.load()
        return opened.width


def same_run(first: Path, second: Path) -> None:
    """Return whether checkpoints and metrics are bit-identical."""
    for name in ("checkpoints/last.safetensors", "checkpoints/best.safetensors", "metrics.jsonl"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
