"""Compiled steps: graphs of a step and its pull-back, rewritten for PyTorch's compiler.

A graph is traced, rewritten, split into a forward and a backward part, prepared and given to inductor.
:mod:`passes` lists every pass in order.
"""

from firststep.metagradient.compiler.compiled import CompiledSteps
from firststep.metagradient.compiler.rows import reaches_deep

__all__ = ["CompiledSteps", "reaches_deep"]
