"""A watched classifier: the loss of its last call, however that call is differentiated."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

import firststep as fs
from reference import dense_gram, log_variance, naive_residuals, relative_error


def network(bias: bool = True) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 7), nn.Tanh(), nn.Linear(7, 3, bias=bias)).double()


def batch(seed: int = 0) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    return torch.randn(6, 4, generator=source, dtype=torch.float64), torch.arange(3).repeat(2)


def reference(model: nn.Module, params: dict[str, Tensor], x: Tensor, y: Tensor, psi: list[str]) -> Tensor:
    """Return the Gram matrix of the classifier by dense Jacobians."""
    return dense_gram(lambda p: naive_residuals(functional_call(model, p, (x,)), y), params, psi)


@pytest.mark.parametrize("bias", [True, False])
def test_loss_gram_and_figures_are_those_of_dense_jacobians(bias: bool) -> None:
    model, (x, y) = network(bias), batch()
    psi = [name for name, _ in model.named_parameters() if name.startswith("2.")]
    with fs.watch(model[2]) as classifier:
        model(x)
        found = classifier.loss(y)
        gram = reference(model, dict(model.named_parameters()), x, y, psi)
        expected = log_variance(gram)
        for one, other in zip(
            torch.autograd.grad(found, list(model.parameters()), materialize_grads=True),
            torch.autograd.grad(
                expected, list(model.parameters()), materialize_grads=True, retain_graph=True
            ),
            strict=True,
        ):
            assert relative_error(one, other) < 1e-8 or float(other.norm()) < 1e-12
        assert found.item() == pytest.approx(expected.item(), rel=1e-9)
        assert relative_error(classifier.gram(y), gram) < 1e-10
        values = torch.linalg.eigvalsh(gram)
        assert classifier.condition_number(y).item() == pytest.approx(
            (values[-1] / values[0]).item(), rel=1e-8
        )
        assert classifier.rank(y).item() == 6
        ratio = (values[-1] / values[0]).log10().item()
        assert classifier.loss(y, loss="log-kappa").item() == pytest.approx(ratio, rel=1e-8)
        assert classifier.loss(y, loss=lambda g: g.diagonal().sum()).item() == pytest.approx(
            gram.trace().item()
        )


def test_the_bias_can_be_left_out() -> None:
    model, (x, y) = network(), batch()
    with fs.watch(model[2]) as classifier:
        model(x)
        gram = reference(model, dict(model.named_parameters()), x, y, ["2.weight"])
        assert relative_error(classifier.gram(y, bias=False), gram) < 1e-10
        assert classifier.loss(y, bias=False).item() == pytest.approx(log_variance(gram).item(), rel=1e-9)


def test_inside_vmap_of_grad_the_values_are_those_outside() -> None:
    model = network()
    batches = [batch(seed) for seed in (0, 1, 2)]
    x, y = (torch.stack(parts) for parts in zip(*batches, strict=True))
    params = dict(model.named_parameters())
    with fs.watch(model[2]) as classifier:

        def loss(p: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            F.cross_entropy(functional_call(model, p, (x,)), y)
            return classifier.loss(y)

        together = vmap(grad(loss), (None, 0, 0))(params, x, y)
        for number, (one_x, one_y) in enumerate(batches):
            expected = torch.autograd.grad(
                loss(params, one_x, one_y), list(params.values()), materialize_grads=True
            )
            for (name, value), one in zip(together.items(), expected, strict=True):
                torch.testing.assert_close(value[number], one, rtol=1e-8, atol=1e-10, msg=name)


def test_the_last_call_counts_and_a_closed_watch_has_none() -> None:
    model, (x, y) = network(), batch()
    classifier = fs.watch(model[2])
    with pytest.raises(ValueError, match="the watched layer has not been called: run the network"):
        classifier.loss(y)
    model(x)
    first = classifier.loss(y)
    model(2 * x)
    assert classifier.loss(y) != first
    with pytest.raises(ValueError, match="labels must have the shape of logits without"):
        classifier.loss(y[:-1])
    classifier.close()
    assert not model[2]._forward_hooks
    with pytest.raises(ValueError, match="has not been called"):
        classifier.loss(y)


def test_what_is_not_finite_is_refused_unless_asked_otherwise() -> None:
    model, (x, y) = network(), batch()
    with fs.watch(model[2]) as classifier:
        model(x * torch.nan)
        with pytest.raises(ValueError, match="contains NaN"):
            classifier.loss(y)
        assert torch.isnan(classifier.loss(y, check_finite=False))


def test_a_watched_network_can_be_copied_and_pickled() -> None:
    model, (x, y) = network(), batch()
    with fs.watch(model[2]) as classifier:
        model(x)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            other(3 * x)  # its own hook, which nobody asks
        assert classifier.loss(y).item() == classifier.loss(y).item()
        model(x)
        expected = classifier.loss(y)
        other(3 * x)
        assert classifier.loss(y) == expected


def test_only_a_module_can_be_watched() -> None:
    with pytest.raises(
        TypeError, match=r"watch takes the classifier, a module such as model\.fc, not Parameter"
    ):
        fs.watch(network()[2].weight)  # type: ignore[arg-type]
