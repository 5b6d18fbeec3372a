"""A process of its own for one contender, so that its peak memory is its own.

Reads lines from standard input: each asks for one more meta-gradient, whose seconds it answers.
The first answer holds the seconds of the first call (compiling included) and writes the gradient to a file.
"""

from __future__ import annotations

import json
import sys
import time

import torch

from contenders import CONTENDERS, FREED_KEPT, TASKS
from firststep.allocator import keep_freed_memory
from peak import forget_peak, peak_megabytes

network, contender, steps, path = sys.argv[1:]
if contender.endswith(FREED_KEPT) and not keep_freed_memory():
    raise SystemExit("this C library cannot be told to keep freed memory, or MALLOC_... is set")
compute = CONTENDERS[contender.removesuffix(FREED_KEPT)](network, int(steps))


def timed() -> tuple[float, dict[str, torch.Tensor]]:
    start = time.perf_counter()
    gradient = compute()
    return time.perf_counter() - start, gradient


first, gradient = timed()
torch.save(gradient, path)
print(json.dumps({"seconds": first, "megabytes": peak_megabytes()}), flush=True)
forget_peak()  # the compiler's
for _line in sys.stdin:
    seconds, gradient = timed()
    seconds /= TASKS.get(contender.removesuffix(FREED_KEPT), 1)
    print(json.dumps({"seconds": seconds, "megabytes": peak_megabytes()}), flush=True)
