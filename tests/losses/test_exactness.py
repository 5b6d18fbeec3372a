"""Every loss through the engines, against formulas of their own, dense Jacobians and an unrolled loop."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import firststep as fs
from any_loss import FORMULAS, network, outer_loss_and_gradient, residual_vector, task
from firststep.functional import FunctionalModule, Residuals, support_gram
from reference import dense_jacobian, relative_error, total_error

SUBSETS: list[Any] = ["cls", "all", ("0.*", "hidden.*"), "cls+emb"]


def patterns(module: torch.nn.Module, subset: Any) -> Any:
    """Return the patterns of a subset that the network has."""
    if isinstance(subset, str):
        return subset
    names = [name for name, _ in module.named_parameters()]
    return tuple(p for p in subset if any(n.startswith(p.rstrip("*")) for n in names))


def kind_of(name: str) -> str:
    return "outputs" if name == "squared_error" else "samples"


@pytest.mark.parametrize("name", FORMULAS)
def test_per_sample_values_are_the_formula_s(name: str) -> None:
    x, y, _, _ = task(name)
    z = network(name)(x)
    assert torch.allclose(fs.LOSSES[name](z, y), FORMULAS[name](z, y), rtol=1e-12)
    assert torch.allclose(fs.LOSSES[name].mean(z, y), FORMULAS[name](z, y).mean(), rtol=1e-12)


def test_every_loss_is_tested() -> None:
    assert list(FORMULAS) == list(fs.LOSSES)


@pytest.mark.parametrize("engine", ["stepwise", "unrolled", "traced"])
@pytest.mark.parametrize("subset", SUBSETS, ids=str)
@pytest.mark.parametrize("name", FORMULAS)
def test_the_meta_gradient(name: str, subset: Any, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The traced graphs, run as they are: to compile them takes minutes and changes nothing here.
    monkeypatch.setattr(torch._inductor, "compile", lambda graph, _inputs, options: graph)
    module, data = network(name), task(name)
    chosen = patterns(module, subset)
    options: dict[str, Any] = {"compile": True} if engine == "traced" else {"engine": engine}
    conditioning = fs.Conditioning(subset=chosen, weight=0.3)
    meta = fs.MetaLearner(module, fs.maml(0.1), loss=name, steps=2, conditioning=conditioning, **options)
    loss, report = meta([data], return_report=True)
    loss.backward()
    expected, gradient = outer_loss_and_gradient(
        module,
        data,
        name,
        psi=list(meta.functional.subset(chosen)),
        steps=2,
        rate=0.1,
        gamma=0.3,
        kind=kind_of(name),
    )
    assert loss.item() == pytest.approx(expected.item(), rel=1e-9)
    found = {n: p.grad for n, p in module.named_parameters()}
    assert total_error(found, gradient) < 1e-7
    with torch.no_grad():
        assert meta([data]).item() == pytest.approx(expected.item(), rel=1e-9)
    assert report.query_accuracy.isnan().all() == (name != "cross_entropy")
    assert (report.condition_numbers >= 1).all()


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from([name for name in FORMULAS if name != "token_cross_entropy"]),
    n=st.integers(2, 12),
    outputs=st.integers(2, 3),
    samples=st.booleans(),
    subset=st.sampled_from(["cls", "all", "body"]),
)
def test_gram_matrices_of_any_shape(name: str, n: int, outputs: int, samples: bool, subset: str) -> None:
    """Also with more residuals than parameters, where it is JᵀJ; the spectrum is that of the dense one."""
    module, (x, y, _, _) = network(name, outputs=outputs), task(name, n=n, outputs=outputs)
    model = FunctionalModule(module)
    kind = "samples" if samples else kind_of(name)
    gram = support_gram(model, x, y, subset=subset, loss=fs.LOSSES[name], residuals=Residuals(kind=kind))
    params = {key: value.detach().requires_grad_() for key, value in model.params().items()}
    dense = dense_jacobian(
        lambda p: residual_vector(name, torch.func.functional_call(module, p, (x,)), y, kind),
        params,
        model.subset(subset),
    )
    if name == "cross_entropy":
        assert relative_error(gram, dense @ dense.T) < 1e-9
        return
    count = min(dense.shape)
    assert len(gram) == count
    expected = torch.linalg.svdvals(dense).square().flip(0)
    assert torch.allclose(
        torch.linalg.eigvalsh(gram), expected, rtol=1e-6, atol=1e-10 * expected.max().item()
    )


@pytest.mark.parametrize("subset", ["cls", "all"])
def test_the_small_side_is_exact_too(subset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """60 residuals of 26 parameters: JᵀJ and its gradient, in every engine."""
    monkeypatch.setattr(torch._inductor, "compile", lambda graph, _inputs, options: graph)
    data = task("squared_error", n=30)
    for options in ({}, {"engine": "unrolled"}, {"compile": True}):
        module = network("squared_error")
        conditioning = fs.Conditioning(subset=subset, weight=0.3)
        meta = fs.MetaLearner(
            module, fs.maml(0.1), loss="squared_error", steps=2, conditioning=conditioning, **options
        )
        loss = meta([data])
        loss.backward()
        expected, gradient = outer_loss_and_gradient(
            module,
            data,
            "squared_error",
            psi=list(meta.functional.subset(subset)),
            steps=2,
            rate=0.1,
            gamma=0.3,
            kind="outputs",
        )
        assert loss.item() == pytest.approx(expected.item(), rel=1e-8)
        assert total_error({n: p.grad for n, p in module.named_parameters()}, gradient) < 1e-6


def test_a_unit_that_is_never_active_does_not_count_on_the_small_side() -> None:
    """Its column of J is zero: the spectrum is that of the other columns, as on the large side."""
    phi = torch.randn(20, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    dead = torch.cat([phi, torch.zeros(20, 1, dtype=torch.float64)], 1)
    z = y = torch.zeros(20, 1, dtype=torch.float64)
    kappa = [fs.condition_number(fs.squared_error.gram(f, z, y)) for f in (phi, dead)]
    large = fs.condition_number(fs.squared_error.gram(dead, z, y, small=False))
    assert kappa[0].item() == pytest.approx(kappa[1].item(), rel=1e-9)
    assert kappa[0].item() == pytest.approx(large.item(), rel=1e-6)


@pytest.mark.parametrize("name", ["huber", "squared_error", "token_cross_entropy"])
def test_finite_differences(name: str) -> None:
    module, data = network(name), task(name)
    meta = fs.MetaLearner(
        module,
        fs.adam(0.05, eps=1e-2),
        loss=name,
        steps=2,
        conditioning=fs.Conditioning(subset="all", weight=0.1),
    )
    meta([data]).backward()
    weight = next(module.parameters())
    direction = torch.randn(weight.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        values = []
        for sign in (1, -1):
            weight += sign * 1e-5 * direction
            values.append(meta([data]).item())
            weight -= sign * 1e-5 * direction
    assert (values[0] - values[1]) / 2e-5 == pytest.approx((weight.grad * direction).sum().item(), rel=1e-5)


def test_the_query_loss_may_differ() -> None:
    module, data = network("squared_error"), task("squared_error")
    meta = fs.MetaLearner(module, fs.maml(0.1), loss="squared_error", query_loss=fs.huber, steps=2)
    loss = meta([data])
    loss.backward()
    expected, gradient = outer_loss_and_gradient(
        module, data, "squared_error", psi=[], steps=2, rate=0.1, gamma=0.0, kind="outputs", query="huber"
    )
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    assert total_error({n: p.grad for n, p in module.named_parameters()}, gradient) < 1e-9


def test_a_function_of_the_user_with_outputs_and_targets_as_dicts() -> None:
    class TwoHeads(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.mean, self.kind = (torch.nn.Linear(*size) for size in ((3, 4), (4, 1), (4, 3)))

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            h = self.body(x).tanh()
            return {"mean": self.mean(h), "kind": self.kind(h)}

    def both(output: Any, target: Any) -> torch.Tensor:
        return fs.squared_error(output["mean"], target["mean"]) + fs.cross_entropy(
            output["kind"], target["kind"]
        )

    g = torch.Generator().manual_seed(0)
    x = torch.randn(5, 3, generator=g)
    y = {"mean": torch.randn(5, 1, generator=g), "kind": torch.arange(5) % 3}
    results = []
    for engine in ("stepwise", "unrolled"):
        torch.manual_seed(0)
        module = TwoHeads()
        meta = fs.MetaLearner(
            module, fs.maml(0.1), loss=both, conditioning=fs.Conditioning(subset="all"), engine=engine
        )
        meta([(x, y, x, y)]).backward()
        results.append({n: p.grad for n, p in module.named_parameters()})
        assert set(meta.adapt(x, y)(x)) == {"mean", "kind"}
    assert total_error(*results) < 1e-4


def test_label_smoothing_class_weights_and_copies() -> None:
    z, y = torch.randn(6, 3), torch.arange(6) % 3
    loss = fs.cross_entropy.configure(label_smoothing=0.1, class_weights=[1.0, 2.0, 0.5])
    weights = torch.tensor([1.0, 2.0, 0.5])
    expected = torch.nn.functional.cross_entropy(z, y, weights, reduction="none", label_smoothing=0.1)
    assert torch.equal(loss(z, y), expected)
    import copy
    import pickle

    assert copy.deepcopy(fs.cross_entropy) is fs.cross_entropy
    assert pickle.loads(pickle.dumps(fs.cross_entropy)) is fs.cross_entropy
    assert torch.equal(pickle.loads(pickle.dumps(loss))(z, y), expected)


def test_rows_of_a_random_subset() -> None:
    """Eigenvalues of a principal submatrix lie between those of the whole: κ is smaller."""
    module, (x, y, _, _) = network("squared_error", outputs=1), task("squared_error", n=5, outputs=1)
    model, loss = FunctionalModule(module), fs.squared_error
    whole = support_gram(model, x, y, subset="all", loss=loss)
    part = support_gram(model, x, y, subset="all", loss=loss, residuals=Residuals(rows=3))
    assert part.shape == (3, 3)
    kept = Residuals(rows=3).chosen(y)
    assert torch.allclose(part * 3, (whole * 5)[kept][:, kept])
    assert fs.condition_number(part) < fs.condition_number(whole)


RULES = [
    fs.momentum(0.05),
    fs.momentum(0.05, nesterov=True),
    fs.adam(0.02, eps=1e-3, weight_decay=0.1),
    fs.rmsprop(0.02, eps=1e-3),
    fs.chain(fs.weight_decay(0.1), fs.clip_by_norm(1.0), fs.adam(rate=None, eps=1e-3), fs.meta_sgd(0.02)),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rules_with_state_traced_and_without_saved_steps(
    rule: fs.Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradient through the state, learned rates included, is that of the unrolled graph."""
    monkeypatch.setattr(torch._inductor, "compile", lambda graph, _inputs, options: graph)
    data = task("squared_error")
    results = []
    options: Any
    for options in ({"engine": "unrolled"}, {}, {"memory": 0}, {"compile": True}):
        module, loss = network("squared_error"), "squared_error"
        meta = fs.MetaLearner(module, rule, loss=loss, steps=3, conditioning=fs.Conditioning(), **options)
        meta([data]).backward()
        results.append({name: p.grad for name, p in meta.named_parameters()})
    for result in results[1:]:
        assert total_error(result, results[0]) < 1e-9


COMPILED: dict[str, tuple[str, fs.Rule, str]] = {
    "squared error, adam, all": ("squared_error", fs.adam(0.02, eps=1e-3), "all"),
    "huber, momentum, cls": ("huber", fs.momentum(0.05), "cls"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", COMPILED)
def test_compiled_code_of_other_losses_and_rules_with_state(case: str) -> None:
    """The code itself runs here, not only the graphs that it is made from."""
    name, rule, subset = COMPILED[case]
    results = []
    for options in ({"compile": False}, {"compile": True}):
        conditioning = fs.Conditioning(subset=subset, weight=0.5) if subset else None
        meta = fs.MetaLearner(network(name), rule, loss=name, steps=3, conditioning=conditioning, **options)
        source = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for value in meta.rule_params.values():
                value.add_(0.02 * torch.randn(value.shape, generator=source, dtype=value.dtype))
        loss = meta([task(name)])
        loss.backward()
        results.append(({key: p.grad for key, p in meta.named_parameters()}, loss.item()))
    (expected, expected_loss), (found, found_loss) = results
    assert found_loss == pytest.approx(expected_loss, rel=1e-9)
    assert total_error(found, expected) < 1e-8
