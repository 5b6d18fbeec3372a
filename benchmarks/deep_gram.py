"""ResNet18's Gram matrix of *all* parameters on 25 images of 84 px, and its gradient, in bounded memory.

J has 25 rows and 11 million columns: 1.1 GB in float32, and its graph, as one would write it first, is many
times that. Here rows and layers are taken in chunks within ``memory``. Prints seconds and the peak of the
process above what the network and one forward and backward pass take.

    python benchmarks/deep_gram.py [MEMORY IN MIB]
"""

from __future__ import annotations

import json
import sys
import time

import torch
from torch.func import functional_call

from firststep import build_backbone, cross_entropy_residuals, jacobian_gram, log_eigenvalue_variance
from peak import peak_megabytes


def main(mebibytes: int) -> dict[str, float]:
    network = build_backbone("resnet18", image_size=84)
    images = torch.randn(25, 3, 84, 84, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(5).repeat_interleave(5)
    params = {name: value.detach().requires_grad_() for name, value in network.named_parameters()}

    def residuals(p: dict[str, torch.Tensor]) -> torch.Tensor:
        return cross_entropy_residuals(functional_call(network, p, (images,)), labels)

    torch.autograd.grad(residuals(params).square().sum(), list(params.values()))
    before, start = peak_megabytes(), time.perf_counter()
    gram = jacobian_gram(residuals, params, memory=mebibytes * 2**20)
    loss, forward = log_eigenvalue_variance(gram), time.perf_counter() - start
    grads = torch.autograd.grad(loss, list(params.values()))
    assert all(bool(torch.isfinite(grad).all()) for grad in grads)
    return {
        "memory": mebibytes,
        "gram": forward,
        "with gradient": time.perf_counter() - start,
        "peak above one backward pass": peak_megabytes() - before,
        "one backward pass": before,
    }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else 512)))
