"""Observe one forward pass: the order of the layers, and the layer that is random."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from firststep.network.randomness import generator_states, same_states
from firststep.network.second_derivatives import is_node_of

Named = Mapping[str, nn.Module]


@contextmanager
def recording_order(modules: Named) -> Iterator[list[str]]:
    """Yield a list that collects the paths of modules as they are called inside the block."""
    order: list[str] = []

    def recorder(path: str) -> Callable[..., None]:
        return lambda *_: order.append(path)

    handles = [part.register_forward_pre_hook(recorder(path)) for path, part in modules.items()]
    try:
        yield order
    finally:
        for handle in handles:
            handle.remove()


def random_layer(modules: Named, run: Callable[[], object], device: torch.device) -> str:
    """Return the first module in which ``run`` draws random numbers, as :func:`described`."""
    starts: dict[str, list[Tensor]] = {}

    def start(path: str) -> None:
        starts[path] = generator_states(device)

    def moved(path: str, output: object) -> bool:
        return not same_states(starts[path], generator_states(device))

    return described(modules, _first_layer(modules, run, moved, start))


def layer_with_operation(network: nn.Module, run: Callable[[], object], operation: str) -> str:
    """Return the first module whose output uses an operation of autograd, as :func:`described`."""
    modules = dict(network.named_modules())

    def has_it(path: str, output: object) -> bool:
        return any(is_node_of(node, operation) for node in _nodes(output))

    return described(modules, _first_layer(modules, run, has_it))


def described(modules: Named, path: str) -> str:
    """Return a layer's name for an error: path and type, or only the type for the network itself."""
    kind = type(modules[path]).__name__
    return f"{path!r} ({kind})" if path else kind


def _first_layer(
    modules: Named,
    run: Callable[[], object],
    holds: Callable[[str, object], bool],
    start: Callable[[str], None] = lambda path: None,
) -> str:
    """Return the path of the first module to finish for which ``holds`` is true; ``""`` if none.

    A module finishes before its caller, so the first is the innermost.
    """
    found: list[str] = []

    def before(path: str) -> Callable[..., None]:
        return lambda *_: start(path)

    def after(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: object, output: object) -> None:
            if not found and holds(path, output):
                found.append(path)

        return hook

    handles = [part.register_forward_pre_hook(before(path)) for path, part in modules.items()]
    handles += [part.register_forward_hook(after(path)) for path, part in modules.items()]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else ""


def _nodes(output: object) -> Iterator[torch.autograd.graph.Node]:
    """Yield the nodes of autograd's graph behind a module's output."""
    seen: set[torch.autograd.graph.Node] = set()
    stack = [part.grad_fn for part in _tensors(output)]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            stack.extend(parent for parent, _ in node.next_functions)


def _tensors(output: object) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, Mapping):
        yield from _tensors(tuple(output.values()))
    elif isinstance(output, tuple | list):
        for part in output:
            yield from _tensors(part)
