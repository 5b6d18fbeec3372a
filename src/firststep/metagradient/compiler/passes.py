"""All passes over traced graphs, in the order in which they run.

A pass is a function ``Graph → None`` that changes the graph in place and keeps what it computes, up to the
order of sums. The first line of its docstring is its purpose, from which the documentation is generated.

Between REWRITE and PREPARE a graph is split: see :mod:`partition` and :mod:`row_parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch.fx import Graph, GraphModule

from firststep.metagradient.compiler.few_channels import use_few_channels
from firststep.metagradient.compiler.few_pixels import use_products_of_patches
from firststep.metagradient.compiler.kernel_gradients import (
    use_fast_kernel_gradients,
    use_kernel_gradients_in_second_derivatives,
)
from firststep.metagradient.compiler.materialize import materialize
from firststep.metagradient.compiler.memory_order import (
    keep_merged_rows_channels_last,
    turn_views_into_reshapes,
)
from firststep.metagradient.compiler.pooled_means import take_means_before_unpooling
from firststep.metagradient.compiler.pooling import fuse_pooling
from firststep.metagradient.compiler.simplify import drop_added_zeros, drop_detach, merge_equal_operations
from firststep.metagradient.compiler.sums import sum_in_two_stages
from firststep.metagradient.compiler.winograd import use_winograd

Pass = Callable[[Graph], None]

CLEAN_UP: tuple[Pass, ...] = (drop_detach, merge_equal_operations)
"""Directly after tracing."""

REWRITE: tuple[Pass, ...] = (
    fuse_pooling,
    drop_added_zeros,
    take_means_before_unpooling,
    use_kernel_gradients_in_second_derivatives,
    use_fast_kernel_gradients,
    turn_views_into_reshapes,
    keep_merged_rows_channels_last,
)
"""Passes on the whole graph, before it is split."""

ROUTINES: tuple[Pass, ...] = (use_few_channels, use_products_of_patches, use_winograd)
"""The convolution routines that are faster than torch's."""

PREPARE: tuple[Pass, ...] = (sum_in_two_stages, materialize, *ROUTINES)
"""Passes on each part, before inductor compiles it."""


def apply(passes: Sequence[Pass], graph: GraphModule) -> None:
    """Run the passes on ``graph`` in place, then remove the nodes that nothing reads."""
    for one in passes:
        one(graph.graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()
