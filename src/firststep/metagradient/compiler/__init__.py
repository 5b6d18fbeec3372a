"""Compiled steps: graphs of a step and its pull-back, rewritten for the compiler of PyTorch.

trace → rewrite (pooling, means, convolutions) → partition into forward and backward → materialize → inductor.
"""

from firststep.metagradient.compiler.compiled import CompiledSteps
from firststep.metagradient.compiler.rows import reaches_deep

__all__ = ["CompiledSteps", "reaches_deep"]
