"""MetaLearner behaves as every PyTorch module does, and its gradient is that of plain autograd."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

import firststep as fs
from firststep import functional
from firststep.methods import METHODS, build_method
from formulas import FORMULAS
from networks import OwnNetwork, generator, shallow_conv, shallow_task
from reference import total_error, unrolled_meta_gradient

RATE, STEPS = 0.2, 2
TASKS = [shallow_task(seed=5), shallow_task(seed=6)]


def make(method: str = "maml", **options: Any) -> fs.MetaLearner:
    chosen = build_method(method, RATE, steps=STEPS)
    options = {"conditioning": fs.Conditioning(weight=0.5), **options}
    return fs.MetaLearner(
        chosen.prepare(shallow_conv(), None), chosen.rule, steps=STEPS, generator=generator(11), **options
    )


def gradients(module: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("method", list(METHODS))
def test_backward_gives_the_gradient_of_an_unrolled_graph(method: str) -> None:
    meta = make(method)
    meta(TASKS).backward()
    expected: dict[str, Tensor] = {}
    for task in TASKS:
        _, params, rule_params = unrolled_meta_gradient(
            meta.network,
            task,
            FORMULAS[method](RATE),
            {name.replace("/", "."): value for name, value in meta.rule_params.items()},
            steps=STEPS,
            moving=meta.rule.moving(meta.functional),
            psi=meta.functional.subset("cls"),
            gamma=0.5,
            first_order=meta.rule.first_order,
        )
        found = {f"network.{name}": g for name, g in params.items()} | {
            f"rule_params.{name.replace('.', '/')}": g for name, g in rule_params.items()
        }
        expected = {name: expected.get(name, 0) + g for name, g in found.items()}
    assert total_error(gradients(meta), expected) < 1e-7


def test_the_network_that_was_passed_is_trained_and_adapted() -> None:
    """No copy: an optimiser step on the meta-learner changes the user's network, and adapt starts there."""
    network = shallow_conv()
    meta = fs.MetaLearner(network, fs.maml(RATE), steps=STEPS)
    assert {id(p) for p in meta.parameters()} == {id(p) for p in network.parameters()}
    before = copy.deepcopy(network.state_dict())
    untrained = meta.adapt(*TASKS[0][:2])
    meta(TASKS).backward()
    torch.optim.SGD(meta.parameters(), 0.1).step()
    assert any(not torch.equal(value, before[name]) for name, value in network.state_dict().items())
    trained = meta.adapt(*TASKS[0][:2])
    x = TASKS[0].support_x  # by whose statistics they normalise
    assert not torch.allclose(trained(x), untrained(x))
    by_hand = functional.adapt(
        functional.Learner(meta.functional, meta.rule), *TASKS[0][:2], steps=STEPS
    ).adapted
    torch.testing.assert_close(trained(x), functional_call(network, by_hand, (x,)))


def test_gradients_accumulate_and_the_loss_joins_other_losses() -> None:
    meta = make("meta-sgd")
    meta(TASKS).backward()
    once = gradients(meta)
    meta(TASKS).backward()
    for name, value in gradients(meta).items():
        torch.testing.assert_close(value, 2 * once[name])
    meta.zero_grad()
    decay = sum(p.square().sum() for p in meta.parameters())
    (3 * meta(TASKS) + 0.1 * decay).backward()
    for name, p in meta.named_parameters():
        torch.testing.assert_close(p.grad, 3 * once[name] + 0.2 * p.detach())
    assert torch.autograd.grad(meta(TASKS), next(meta.parameters()))[0] is not None


def test_mean_is_the_sum_divided_by_the_tasks() -> None:
    total, mean = make(), make(reduction="mean")
    total(TASKS).backward()
    mean(TASKS).backward()
    assert mean(TASKS).item() == pytest.approx(total(TASKS).item() / 2)
    for name, value in gradients(mean).items():
        torch.testing.assert_close(value, gradients(total)[name] / 2)


def test_the_loss_without_gradients_is_the_same_and_cheaper() -> None:
    meta = make()
    with_grad, report = meta(TASKS, return_report=True)
    with torch.no_grad():
        without, other = meta(TASKS, return_report=True)
    assert with_grad.requires_grad
    assert not without.requires_grad
    assert without.item() == pytest.approx(with_grad.item(), rel=1e-12)
    for ours, theirs in zip(report, other, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert report.query_loss.shape == (2,)
    assert report.condition_numbers.shape == (2, STEPS)
    expected = report.query_loss.sum() + 0.5 * report.conditioning.sum()
    torch.testing.assert_close(with_grad.detach(), expected)


@pytest.mark.parametrize("method", list(METHODS))
def test_state_dict_copy_and_pickle(method: str, tmp_path: Path) -> None:
    meta = make(method)
    with torch.no_grad():
        for p in meta.parameters():
            p.add_(0.01)
    loss = meta(TASKS[:1]).item()
    fresh = make(method)
    assert fresh(TASKS[:1]).item() != loss
    torch.save(meta.state_dict(), tmp_path / "meta.pt")
    fresh.load_state_dict(torch.load(tmp_path / "meta.pt", weights_only=True))
    for other in (fresh, copy.deepcopy(meta), pickle.loads(pickle.dumps(meta))):
        assert other(TASKS[:1]).item() == loss
        other(TASKS[:1]).backward()
        torch.optim.SGD(other.parameters(), 0.1).step()
    assert meta(TASKS[:1]).item() == loss, "copies share nothing"


@pytest.mark.slow
def test_a_compiled_meta_learner_can_be_copied() -> None:
    meta = make(compile=True)
    loss = meta(TASKS).item()
    assert copy.deepcopy(meta)(TASKS).item() == pytest.approx(loss, rel=1e-9)


def test_to_moves_network_and_rule() -> None:
    meta = make("meta-sgd").to(torch.float32)
    assert {p.dtype for p in meta.parameters()} == {torch.float32}
    loss = meta([task.to(dtype=torch.float32) for task in TASKS])
    assert loss.dtype == torch.float32
    loss.backward()
    assert {p.grad.dtype for p in meta.parameters() if p.grad is not None} == {torch.float32}
    exact = make("meta-sgd")(TASKS).item()
    assert loss.item() == pytest.approx(exact, rel=1e-4)


def test_clipping_and_a_scheduler_work_as_everywhere() -> None:
    meta = make("meta-sgd")
    optimiser = torch.optim.AdamW(meta.parameters(), 0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimiser, 1, 0.5)
    losses = []
    for _ in range(4):
        optimiser.zero_grad()
        loss = meta(TASKS)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(meta.parameters(), 0.1)
        clipped = torch.cat([g.reshape(-1) for g in gradients(meta).values()]).norm()
        assert clipped <= min(0.1, norm) * 1.001
        optimiser.step()
        scheduler.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_train_and_eval_reach_the_network_and_buffers_stay() -> None:
    network = OwnNetwork().double()
    meta = fs.MetaLearner(network, fs.maml(RATE), steps=STEPS)
    assert meta.functional.classifier == "head.out"
    before = copy.deepcopy(dict(network.named_buffers()))
    training = meta(TASKS).item()
    meta.adapt(*TASKS[0][:2])
    for name, value in network.named_buffers():
        assert torch.equal(value, before[name]), name
    assert meta.eval()(TASKS).item() != training
    assert not network.training
    assert meta.train()(TASKS).item() == training


def test_frozen_parameters_stay_fixed() -> None:
    network = shallow_conv()
    network.get_parameter("blocks.0.conv.weight").requires_grad_(False)
    meta = fs.MetaLearner(network, fs.maml(RATE), steps=STEPS, conditioning=fs.Conditioning())
    meta(TASKS).backward()
    assert network.get_parameter("blocks.0.conv.weight").grad is None
    assert network.get_parameter("blocks.1.conv.weight").grad is not None
    adapted = meta.adapt(*TASKS[0][:2])
    kept = [m.get_parameter("blocks.0.conv.weight") for m in (adapted, network)]
    assert torch.equal(*kept)


class TwoInputs(nn.Module):
    """A network of token numbers and a mask, as for text; its output has ``logits``."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.fc = nn.Linear(4, 3)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        words = self.embed(tokens) * mask[..., None]
        return self.fc(words.sum(1) / mask.sum(1, keepdim=True))


def text_task(form: type) -> tuple[Any, Tensor, Any, Tensor]:
    source = generator(3)

    def inputs(n: int) -> Any:
        tokens = torch.randint(7, (n, 5), generator=source)
        mask = (torch.rand(n, 5, generator=source) < 0.7).double()
        mask[:, 0] = 1
        return (tokens, mask) if form is tuple else {"tokens": tokens, "mask": mask}

    labels = torch.arange(3).repeat(2)
    return inputs(6), labels, inputs(6), labels


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", [tuple, dict])
def test_inputs_may_be_tuples_or_dicts(form: type, compile: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if form is dict:  # the same graphs as of tuples: traced, and run as they are
        monkeypatch.setattr(torch._inductor, "compile", lambda graph, _inputs, options: graph)
    network = TwoInputs().double()
    meta = fs.MetaLearner(network, fs.maml(RATE), steps=STEPS, compile=compile)
    task = text_task(form)
    loss = meta([task])
    loss.backward()
    x, y, query, query_y = text_task(tuple)
    params = dict(network.named_parameters())
    start = dict(params)
    for _ in range(STEPS):
        support = F.cross_entropy(functional_call(network, params, x), y)
        grads = torch.autograd.grad(support, list(params.values()), create_graph=True)
        params = {n: p - RATE * g for (n, p), g in zip(params.items(), grads, strict=True)}
    outer = F.cross_entropy(functional_call(network, params, query), query_y)
    expected = dict(zip(start, torch.autograd.grad(outer, list(start.values())), strict=True))
    assert loss.item() == pytest.approx(outer.item(), rel=1e-10)
    assert total_error(gradients(network), expected) < 1e-9
    meta.adapt(task[0], task[1], steps="auto")
    assert meta.condition_number(task[0], task[1], subset="all") > 1


def test_auto_takes_the_chosen_number_of_steps() -> None:
    meta = make()
    x, y = TASKS[0][:2]
    choice = meta.choose_steps(x, y)
    query = TASKS[0].query_x
    torch.testing.assert_close(
        meta.adapt(x, y, steps="auto")(query), meta.adapt(x, y, steps=choice.steps)(query)
    )
    assert not torch.allclose(
        meta.adapt(x, y, steps=choice.steps + 3)(query), meta.adapt(x, y, steps=choice.steps)(query)
    )


def test_condition_number_is_that_of_the_gram_matrix() -> None:
    meta = make()
    gram = functional.support_gram(meta.functional, *TASKS[0][:2], subset="all")
    values = torch.linalg.eigvalsh(gram.detach())
    assert meta.condition_number(*TASKS[0][:2], subset="all").item() == pytest.approx(
        (values[-1] / values[0]).item(), rel=1e-6
    )


def test_scaled_steps_share_the_parameters() -> None:
    meta = make()
    longer = meta.scaled(2.0)
    plain = fs.MetaLearner(meta.network, fs.maml(2 * RATE), steps=STEPS)
    x, y, query, _ = TASKS[0]
    torch.testing.assert_close(longer.adapt(x, y)(query), plain.adapt(x, y)(query))
    assert next(longer.parameters()) is next(meta.parameters())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make(reduction="max"), "reduction must be"),
        (lambda: fs.MetaLearner(nn.Conv2d(1, 1, 1), head="shared"), "no nn.Linear"),
        (lambda: fs.MetaLearner(nn.Conv2d(1, 1, 1), conditioning=fs.Conditioning()), "no nn.Linear.*'all'"),
        (lambda: fs.MetaLearner(shallow_conv(), steps=0), "steps must be at least 1"),
        (lambda: fs.MetaLearner(shallow_conv(), classifier="nowhere"), "nowhere"),
        (lambda: make()([]), "must not be empty"),
        (lambda: make()([TASKS[0][:3]]), "support_x, support_y, query_x, query_y"),
        (lambda: make()(TASKS, query_weights=[1.0]), "query_weights"),
        (lambda: make(conditioning=fs.Conditioning(subset="nothing")), "unknown parameter subset"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_dropout_is_refused_by_name() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 3)).double()
    with pytest.raises(ValueError, match="'1'"):
        fs.MetaLearner(network)(TASKS)
    fs.MetaLearner(network.eval())(TASKS)


def test_changed_attributes_count_from_then_on() -> None:
    meta = make()
    meta(TASKS)
    meta.steps, meta.conditioning, meta.rule = 3, None, fs.maml(2 * RATE)
    expected = fs.MetaLearner(meta.network, fs.maml(2 * RATE), steps=3)
    assert meta(TASKS).item() == expected(TASKS).item()
    x, y, query, _ = TASKS[0]
    torch.testing.assert_close(meta.adapt(x, y)(query), expected.adapt(x, y)(query))


def test_one_task_needs_no_list() -> None:
    meta = make()
    assert meta(TASKS[0]).item() == meta([tuple(TASKS[0])]).item()
