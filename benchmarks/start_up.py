"""Seconds until the library is imported, until the help is printed, and of a compiled start; prints JSON.

Beside the import of torch alone. The compiled start is the first meta-gradient of Conv4-64 (84 px, 5-way
5-shot, 5 steps) in a fresh process: cold with an empty folder for all that the compiler keeps on disk, warm
with what the cold one has left there, and with the kernels' C++ alone found there, so that what is left is
Python's part of a cold start. Imports are not in it. Beside the seconds of the clock are those of
the processor, children included: on a busy machine they say more.

    python benchmarks/start_up.py [--only imports|compiled] [--network "Conv4-32, 28 px"]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
REPEATS = 5
COMMANDS = {
    "import torch": ["-c", "import torch"],
    "import firststep": ["-c", "import firststep; firststep.MetaLearner"],
    "firststep --help": ["-m", "firststep", "--help"],
}
FIRST_CALL = """
import json, resource, sys, time
from contenders import firststep
compute = firststep(sys.argv[1], 5, compile=True)
def processor():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
start, used = time.perf_counter(), processor()
compute()
print(json.dumps([time.perf_counter() - start, processor() - used]))
"""


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def imports() -> dict[str, float]:
    """Return interleaved medians; after a first round the files are in the system's cache."""
    found: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(REPEATS + 1):
        for name, arguments in COMMANDS.items():
            found[name].append(seconds(arguments))
    return {name: statistics.median(times[1:]) for name, times in found.items()}


def compiled(network: str) -> dict[str, float]:
    """Measure one start of each kind."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        # The compiler keeps its header in the temporary folder, whatever the other variable says.
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/kept", "TMPDIR": folder}
        no_graphs = {"TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0"}
        for name, settings in {"cold": {}, "warm": {}, "C++ kept": no_graphs}.items():
            done = subprocess.run(
                [sys.executable, "-c", FIRST_CALL, network],
                check=True, stdout=subprocess.PIPE, text=True, cwd=HERE, env=environment | settings,
            )  # fmt: skip
            clock, processor = json.loads(done.stdout)
            found |= {f"compiled, {name}": clock, f"compiled, {name}, processor": processor}
    return found


def main() -> dict[str, float]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("imports", "compiled"))
    parser.add_argument("--network", default="Conv4-64, 84 px", help="one of benchmarks/contenders.py")
    options = parser.parse_args()
    found: dict[str, float] = {}
    if options.only != "compiled":
        found |= imports()
    if options.only != "imports":
        found |= compiled(options.network)
    return found


if __name__ == "__main__":
    print(json.dumps(main()))
