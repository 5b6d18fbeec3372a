"""Operations that torch differentiates once: replaced by ones with all derivatives, or refused by name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from firststep import Conditioning, FirststepError, MetaLearner, anil, fomaml, maml
from firststep.functional import FunctionalModule
from firststep.network.second_derivatives import _Switches
from plain_maml import embedding_bag as by_hand
from reference import relative_error
from zoo import WAYS, Recurrent, in_zoo, sequences, task_of, vectors


class Bag(nn.Module):
    """The layer inside a network whose output is a linear function of it."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.classifier = nn.Linear(4, 2)

    def forward(self, *arguments: Tensor) -> Tensor:
        return self.classifier(self.layer(*arguments))


IDS = torch.tensor([3, 1, 4, 1, 5, 2, 2, 6])
OFFSETS = torch.tensor([0, 3, 3, 6])
MATRIX = IDS.view(2, 4)
WEIGHTS = torch.linspace(-1, 2, 8).double()


@pytest.mark.parametrize(
    ("options", "inputs"),
    [
        ({"mode": "sum"}, (MATRIX,)),
        ({"mode": "mean", "padding_idx": 1}, (MATRIX,)),
        ({"mode": "max", "padding_idx": 2}, (MATRIX,)),
        ({"mode": "mean"}, (IDS, OFFSETS)),
        ({"mode": "max"}, (IDS, OFFSETS)),
        ({"mode": "sum", "include_last_offset": True}, (IDS, torch.tensor([0, 2, 2, 8]))),
        ({"mode": "sum"}, (IDS, OFFSETS, WEIGHTS)),
        ({"mode": "sum", "padding_idx": -6}, (MATRIX, None, WEIGHTS.view(2, 4))),
        ({"mode": "mean", "sparse": True}, (MATRIX,)),
    ],
)
def test_bags_have_torch_s_values_and_all_derivatives(
    options: dict[str, Any], inputs: tuple[Any, ...]
) -> None:
    torch.manual_seed(0)
    network = Bag(nn.EmbeddingBag(7, 4, **options)).double()
    model = FunctionalModule(network)
    found = model(model.params(), inputs)
    torch.testing.assert_close(found.logits, network(*inputs), rtol=1e-12, atol=1e-12)

    def second(features: Tensor) -> Tensor:
        (grad,) = torch.autograd.grad(features.pow(3).sum(), weight, create_graph=True)
        return torch.autograd.grad(grad.square().sum(), weight)[0]

    weight, layer = network.layer.weight, network.layer
    plain = by_hand(
        inputs[0], weight, inputs[1] if len(inputs) > 1 else None, None, 2.0, False, layer.mode, False,
        inputs[2] if len(inputs) > 2 else None, layer.include_last_offset, layer.padding_idx,
    )  # fmt: skip
    torch.testing.assert_close(found.features, plain)
    assert relative_error(second(found.features), second(plain)) < 1e-12


def test_values_of_the_others_are_torch_s() -> None:
    points = torch.linspace(-5, 5, 21, dtype=torch.float64)
    network = nn.Sequential(nn.Linear(1, 4), nn.Hardsigmoid(), nn.Linear(4, 2)).double()
    model = FunctionalModule(network)
    torch.testing.assert_close(model(model.params(), points[:, None]).logits, network(points[:, None]))


class Seen(TorchFunctionMode):
    """Whether cuDNN may be used when a recurrent layer is called."""

    def __init__(self) -> None:
        super().__init__()
        self.cudnn: list[bool] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.lstm:
            self.cudnn.append(torch.backends.cudnn.enabled)
        return function(*args, **(kwargs or {}))


def test_recurrent_layers_run_without_cudnn_which_has_no_second_derivative() -> None:
    meta = MetaLearner(Recurrent(nn.LSTM).double(), steps=1)
    with Seen() as seen:
        meta([task_of(sequences)])
    assert seen.cudnn
    assert not any(seen.cudnn)
    assert torch.backends.cudnn.enabled


def switches() -> tuple[bool, ...]:
    backends = torch.backends
    return (
        backends.cuda.flash_sdp_enabled(),
        backends.cuda.math_sdp_enabled(),
        backends.mha.get_fastpath_enabled(),
        backends.cudnn.enabled,
    )


def test_nothing_of_it_stays_on() -> None:
    before = switches()
    network, task = in_zoo("transformer")
    MetaLearner(network, steps=1)([task])
    assert switches() == before


def test_nothing_of_it_stays_on_after_threads_that_overlap() -> None:
    """The second thread begins within the first and ends after it."""
    shared = _Switches()
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
        before = switches()
        with ThreadPoolExecutor(2) as threads:
            first, second = shared.twice_differentiable(), shared.twice_differentiable()
            threads.submit(first.__enter__).result()
            threads.submit(second.__enter__).result()
            threads.submit(first.__exit__, None, None, None).result()
            assert switches() != before
            threads.submit(second.__exit__, None, None, None).result()
        assert switches() == before


class Distances(nn.Module):
    """``torch.cdist`` has no second derivative, and is not replaced."""

    def forward(self, points: Tensor) -> Tensor:
        return torch.cdist(points, points.new_ones(6, points.shape[1]) / 3)


def distances() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 4), nn.Sequential(nn.Tanh(), Distances()), nn.Linear(6, WAYS)).double()


@pytest.mark.parametrize("options", [{}, {"engine": "unrolled"}, {"compile": True}, {"memory": 0}], ids=str)
def test_what_cannot_be_differentiated_twice_is_named(options: dict[str, Any]) -> None:
    meta = MetaLearner(distances(), maml(), **options)
    with pytest.raises(
        FirststepError, match=r"^'1\.1' \(Distances\) uses _cdist, .*`rule=fomaml\(\)`.*`rule=anil\(\)`"
    ):
        meta([task_of(vectors)])


@pytest.mark.parametrize("rule", [fomaml, anil])
def test_what_the_error_suggests_works(rule: Any) -> None:
    network = distances()
    meta = MetaLearner(network, rule(0.1), conditioning=Conditioning())
    meta([task_of(vectors)]).backward()
    assert all(bool((p.grad != 0).any()) for p in network.parameters())


def test_other_errors_stay_what_they_are() -> None:
    class Broken(nn.Module):
        def forward(self, points: Tensor) -> Tensor:
            raise RuntimeError("the network's own")

    meta = MetaLearner(nn.Sequential(Broken(), nn.Linear(5, 3)))
    with pytest.raises(RuntimeError, match=r"^the network's own$"):
        meta([task_of(vectors)])


def test_attention_alone_would_fail() -> None:
    """The reason for the replacement; when torch has this derivative, remove it."""
    queries = torch.randn(1, 1, 3, 4, requires_grad=True)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        output = F.scaled_dot_product_attention(queries, queries, queries)
    (grad,) = torch.autograd.grad(output.sum(), queries, create_graph=True)
    with pytest.raises(RuntimeError, match="not implemented"):
        torch.autograd.grad(grad.square().sum(), queries)
