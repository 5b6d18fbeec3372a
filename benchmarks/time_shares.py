"""Profile one compiled meta-gradient by torch's profiler.

python benchmarks/time_shares.py "Conv4-64, 84 px" 5
python benchmarks/time_shares.py "Conv4-32, 28 px" 5 all        # with conditioning on these parameters
"""

from __future__ import annotations

import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile

from contenders import CONTENDERS

# Part of a profiled operation's name; the first match counts.
PARTS = {
    "convolutions, ours": ("winograd_convolution", "few_channels"),
    "kernel gradients, ours": ("winograd_gradient", "direct_gradient"),
    "convolutions, the library's": ("convolution",),
    "matrix products, some kernel gradients among them": (
        "aten::mm",
        "aten::bmm",
        "aten::addmm",
        "aten::baddbmm",
    ),
    "pooling": ("pool", "firststep::", "gather"),
    "filling and copying memory": ("fill_", "zero_", "copy_", "clone", "empty", "resize_"),
    "entry by entry and reductions, compiled": ("CompiledFxGraph", "cpp_fused"),
}
REST = "dispatch and the rest"


def shares(network: str, steps: int, *subset: str) -> dict[str, float]:
    """Return milliseconds per part; `all` on one thread, because the profiler sees no other."""
    if "all" in subset:
        torch.set_num_threads(1)
    compute = CONTENDERS[" + ".join(["firststep", *subset])](network, steps)
    for _ in range(3):
        compute()
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        compute()
    found = dict.fromkeys([*PARTS, REST], 0.0)
    for operation in seen.key_averages():
        part = next((p for p, words in PARTS.items() if any(w in operation.key for w in words)), REST)
        found[part] += operation.self_cpu_time_total / 1e3
    return found


if __name__ == "__main__":
    print(json.dumps(shares(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])))
