"""A process of its own for one contender, so that its peak memory is its own.

Reads lines from standard input: each asks for one more meta-gradient, whose seconds it answers.
The first answer holds the seconds of the first call (compiling included) and writes the gradient to a file.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import torch

from contenders import CONTENDERS

network, contender, steps, path = sys.argv[1:]
compute = CONTENDERS[contender](network, int(steps))


def timed() -> tuple[float, dict[str, torch.Tensor]]:
    start = time.perf_counter()
    gradient = compute()
    return time.perf_counter() - start, gradient


first, gradient = timed()
torch.save(gradient, path)
print(json.dumps({"seconds": first}), flush=True)
for _line in sys.stdin:
    seconds, gradient = timed()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(json.dumps({"seconds": seconds, "megabytes": peak}), flush=True)
