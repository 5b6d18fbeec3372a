"""Seconds until the library is imported, beside torch alone, and until the help is printed; prints JSON."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

REPEATS = 5
COMMANDS = {
    "import torch": ["-c", "import torch"],
    "import firststep": ["-c", "import firststep; firststep.MetaLearner"],
    "firststep --help": ["-m", "firststep", "--help"],
}


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> dict[str, float]:
    """Medians, interleaved; the files are in the system's cache after a first round."""
    found: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(REPEATS + 1):
        for name, arguments in COMMANDS.items():
            found[name].append(seconds(arguments))
    return {name: statistics.median(times[1:]) for name, times in found.items()}


if __name__ == "__main__":
    print(json.dumps(main()))
