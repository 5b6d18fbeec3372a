"""Gram matrices of any subset against the dense Jacobian, on networks with coupled samples."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from firststep import classifier_gram, cross_entropy_residuals, jacobian_gram, log_eigenvalue_variance
from firststep.adaptation import gram_of
from firststep.functional import FunctionalModule, support_gram
from networks import OwnNetwork, small_conv, small_resnet, small_task
from reference import dense_gram, naive_residuals, relative_error, total_error

SUBSETS = ["cls", "emb", "ebn", "cls+emb", "cls+ebn", "emb+ebn", "cls+emb+ebn", "all"]
NETWORKS = {"conv": small_conv, "resnet": small_resnet}
TASK = small_task()


def own_network() -> FunctionalModule:
    return FunctionalModule(OwnNetwork().double(), classifier="head.out")


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("subset", SUBSETS)
def test_value_and_gradient_are_the_dense_jacobian_s(network: str, subset: str) -> None:
    model = FunctionalModule(NETWORKS[network]())
    params = model.params()
    psi = model.subset(subset)

    def residuals(p: dict[str, torch.Tensor]) -> torch.Tensor:
        logits = functional_call(model.module, p, (TASK.support_x,))
        return naive_residuals(logits, TASK.support_y)

    expected = dense_gram(residuals, params, psi)
    through_vjps = jacobian_gram(residuals, params, wrt=psi)
    as_users_call_it = support_gram(model, TASK.support_x, TASK.support_y, params=params, subset=subset)
    as_compilers_trace_it = gram_of(model, TASK.support_x, TASK.support_y, params, subset, in_graph=True)
    slopes = []
    for gram in (expected, through_vjps, as_users_call_it, as_compilers_trace_it):
        assert relative_error(gram, expected) < 1e-9
        loss = log_eigenvalue_variance(gram)
        grads = torch.autograd.grad(loss, list(params.values()), allow_unused=True, materialize_grads=True)
        slopes.append(dict(zip(params, grads, strict=True)))
    for slope in slopes[1:]:
        assert total_error(slope, slopes[0]) < 1e-8


def test_classifier_through_vjps_is_the_closed_form() -> None:
    model = FunctionalModule(small_conv())
    output = model(model.params(), TASK.support_x)
    gram = jacobian_gram(
        lambda p: cross_entropy_residuals(model(p, TASK.support_x).logits, TASK.support_y),
        model.params(),
        wrt=model.subset("cls"),
    )
    assert relative_error(gram, classifier_gram(output.features, output.logits, TASK.support_y)) < 1e-9


def test_eigenvalues_are_those_of_the_gauss_newton_matrix() -> None:
    """A second opinion from parameter space: P x P from explicit outer products, for a tiny network."""
    model = own_network()
    params = {name: value.requires_grad_() for name, value in model.params().items()}
    logits = functional_call(model.module, params, (TASK.support_x,))
    psi = model.subset(["head.out.*", "head.norm.*"])
    gauss_newton: torch.Tensor | float = 0.0
    for entry in (F.cross_entropy(logits, TASK.support_y, reduction="none") / len(logits)).sqrt():
        grads = torch.autograd.grad(entry, [params[name] for name in psi], retain_graph=True)
        row = torch.cat([grad.reshape(-1) for grad in grads])
        gauss_newton = gauss_newton + 2 * torch.outer(row, row)
    assert isinstance(gauss_newton, torch.Tensor)
    expected = torch.linalg.eigvalsh(gauss_newton)[-len(logits) :]
    gram = support_gram(model, TASK.support_x, TASK.support_y, subset=psi)
    torch.testing.assert_close(2 * torch.linalg.eigvalsh(gram), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("chunk_size", [1, 4, 100])
@pytest.mark.parametrize("memory", [1, 2**29])
def test_chunks_and_column_groups_change_nothing(chunk_size: int, memory: int) -> None:
    model = FunctionalModule(small_conv())
    params = {name: value.requires_grad_() for name, value in model.params().items()}

    def residuals(p: dict[str, torch.Tensor]) -> torch.Tensor:
        return cross_entropy_residuals(model(p, TASK.support_x).logits, TASK.support_y)

    results = []
    for options in ({}, {"chunk_size": chunk_size, "memory": memory}):
        gram = jacobian_gram(residuals, params, **options)  # type: ignore[arg-type]
        grads = torch.autograd.grad(log_eigenvalue_variance(gram), list(params.values()))
        results.append((gram.detach(), dict(zip(params, grads, strict=True))))
    assert relative_error(results[1][0], results[0][0]) < 1e-12
    assert total_error(results[1][1], results[0][1]) < 1e-8


def test_leading_dimensions_are_tasks_of_their_own(generator: torch.Generator) -> None:
    images = torch.randn(2, 6, 1, 16, 16, generator=generator, dtype=torch.float64)
    model = FunctionalModule(small_conv())
    params = {name: value.requires_grad_() for name, value in model.params().items()}

    def of_task(p: dict[str, torch.Tensor], task: int) -> torch.Tensor:
        return cross_entropy_residuals(model(p, images[task]).logits, TASK.support_y)

    both = jacobian_gram(lambda p: torch.stack([of_task(p, 0), of_task(p, 1)]), params)
    single = torch.stack([jacobian_gram(lambda p, t=t: of_task(p, t), params) for t in (0, 1)])  # type: ignore[misc]
    torch.testing.assert_close(both, single, rtol=1e-10, atol=1e-14)
    leaves = list(params.values())
    slopes = [torch.autograd.grad(log_eigenvalue_variance(g).sum(), leaves) for g in (both, single)]
    for got, expected in zip(*slopes, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-7, atol=1e-12)


def test_a_parameter_that_matters_to_nothing_is_zero_columns() -> None:
    params = {"used": torch.ones(3, dtype=torch.float64), "unused": torch.ones(2, dtype=torch.float64)}
    gram = jacobian_gram(lambda p: p["used"] ** 2, params)
    torch.testing.assert_close(gram, 4 * torch.eye(3, dtype=torch.float64))


def test_captured_tensors_are_refused() -> None:
    captured = torch.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match=r"shape \(3,\) that requires grad but is not in params"):
        jacobian_gram(lambda p: p["w"] * captured, {"w": torch.ones(3)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wrt": ["nothing"]}, "wrt names"),
        ({"wrt": []}, "at least one parameter"),
        ({"params": {}}, "params must not be empty"),
        ({"params": {"w": torch.tensor([float("nan")])}}, r"params\['w'\] contains NaN"),
        ({"chunk_size": 0}, "chunk_size"),
        ({"residuals": lambda p: p["w"].sum()}, "residuals must return"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {
        "residuals": lambda p: p["w"] ** 2,
        "params": {"w": torch.ones(3)},
        **change,
    }
    with pytest.raises(ValueError, match=message):
        jacobian_gram(**arguments)  # type: ignore[arg-type]


def test_float32_networks_have_float64_grams_of_the_same_value() -> None:
    expected = support_gram(FunctionalModule(small_conv()), TASK.support_x, TASK.support_y, subset="all")
    got = support_gram(
        FunctionalModule(small_conv(torch.float32)), TASK.support_x.float(), TASK.support_y, subset="all"
    )
    assert got.dtype == torch.float64
    assert relative_error(got, expected) < 1e-5


@pytest.mark.parametrize("memory", [0, 2**29])
def test_parameters_without_dimensions(memory: int) -> None:
    """A temperature, for example; with J kept and not."""
    x = torch.linspace(0.5, 2.0, 3, dtype=torch.float64)
    params = {"gain": torch.tensor(1.3, dtype=torch.float64), "shift": torch.tensor([0.2]).double()}

    def gram(gain: Tensor, shift: Tensor) -> Tensor:
        given = {"gain": gain, "shift": shift}
        return jacobian_gram(lambda p: torch.sin(p["gain"] * x + p["shift"]), given, memory=memory)

    leaves = tuple(value.requires_grad_() for value in params.values())
    cosine = torch.cos(params["gain"] * x + params["shift"]).detach()
    torch.testing.assert_close(gram(*leaves).detach(), torch.outer(cosine, cosine) * (torch.outer(x, x) + 1))
    assert torch.autograd.gradcheck(gram, leaves)


def test_a_gram_matrix_that_gets_no_gradient_passes_none_on() -> None:
    class Ignored(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, gram: Tensor, other: Tensor) -> Tensor:
            return other.clone()

        @staticmethod
        def backward(ctx: object, grad: Tensor) -> tuple[None, Tensor]:  # type: ignore[override]
            return None, grad

    weight = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    gram = jacobian_gram(lambda p: torch.sin(p["weight"]), {"weight": weight})
    (grad,) = torch.autograd.grad(Ignored.apply(gram, 3 * weight).sum(), weight)
    assert grad.item() == 3
