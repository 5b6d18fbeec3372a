"""Networks that draw random numbers are refused by name, or draw the same ones throughout a task."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep import Conditioning, MetaLearner, maml
from firststep.functional import EngineOptions, FunctionalModule, Learner, adapt, meta_gradient, support_gram
from plain_maml import outer_loss_and_gradient
from reference import total_error
from zoo import WAYS, task_of, vectors

RATE, STEPS, GAMMA = 0.3, 3, 0.5


class DropPath(nn.Module):
    """Stochastic depth as timm has it: a number for each sample, drawn into a new tensor."""

    def forward(self, values: Tensor) -> Tensor:
        return values * values.new_empty(len(values), 1).bernoulli_(0.6) if self.training else values


class Residual(nn.Module):
    """Functional dropout, and a layer that drops whole samples; both only in training mode."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(5, 8)
        self.path = DropPath()
        self.classifier = nn.Linear(8, WAYS)
        self.rate = 0.0
        self.masks: dict[int, Tensor] | None = None

    def forward(self, points: Tensor) -> Tensor:
        hidden = torch.tanh(self.hidden(points))
        if self.masks is not None:  # the test's own, by the number of samples
            return self.classifier(hidden * self.masks[len(points)])
        return self.classifier(F.dropout(self.path(hidden), self.rate, self.training and self.rate > 0))


def network(seed: int = 0) -> Residual:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Residual().double()


def uses(model: FunctionalModule) -> list[Callable[[], object]]:
    task = task_of(vectors)
    x, y = task.support_x, task.support_y
    return [
        lambda: meta_gradient(Learner(model, maml()), [task]),
        lambda: meta_gradient(Learner(model, maml()), [task], options=EngineOptions(engine="unrolled")),
        lambda: meta_gradient(Learner(model, maml()), [task], options=EngineOptions(compile=True)),
        lambda: adapt(Learner(model, maml()), x, y),
        lambda: support_gram(model, x, y),
    ]


def test_a_random_layer_is_named_whatever_the_network_is_used_for() -> None:
    model = FunctionalModule(network())
    for use in uses(model):
        state = torch.get_rng_state()
        with pytest.raises(
            ValueError, match=r"'path' \(DropPath\) draws random.*eval\(\).*randomness='same'`"
        ):
            use()
        assert torch.equal(torch.get_rng_state(), state)
    model.module.eval()
    for use in uses(model)[3:]:
        use()


def test_a_function_in_the_network_s_own_forward_is_found_too() -> None:
    one = network()
    one.path.eval()
    one.rate = 0.5
    with pytest.raises(ValueError, match=r"^Residual draws random numbers, so a step"):
        MetaLearner(one)([task_of(vectors)])


def test_each_mode_is_looked_at() -> None:
    meta = MetaLearner(network().eval(), steps=1)
    meta([task_of(vectors)])
    meta.train()
    with pytest.raises(ValueError, match="DropPath"):
        meta([task_of(vectors)])


class Recorded(Residual):
    """Notes what was dropped, by the number of samples."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[int, list[Tensor]] = {}

    def forward(self, points: Tensor) -> Tensor:
        if self.masks is None:
            with torch.random.fork_rng():
                drawn = F.dropout(self.path(torch.ones(len(points), 8).double()), self.rate)
                self.seen.setdefault(len(points), []).append(drawn)
        return super().forward(points)


@pytest.mark.parametrize("subset", ["cls", "all"])
@pytest.mark.parametrize("options", [{}, {"memory": 0}, {"engine": "unrolled"}], ids=str)
def test_with_the_same_numbers_throughout_a_task_the_gradient_is_exact(subset: str, options: dict) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        one = Recorded().double()
        one.rate = 0.3
        task = task_of(vectors)
        meta = MetaLearner(
            one,
            maml(RATE),
            steps=STEPS,
            conditioning=Conditioning(weight=GAMMA, subset=subset),
            randomness="same",
            **options,
        )
        meta.functional.observe(meta.functional.params(), task.support_x)
        one.seen.clear()
        loss = meta([task])
        loss.backward()
    assert all(len(drawn) >= 1 for drawn in one.seen.values())
    assert all(torch.equal(mask, drawn[0]) for drawn in one.seen.values() for mask in drawn)
    assert all(bool((drawn[0] == 0).any()) for drawn in one.seen.values())
    one.masks = {count: drawn[0] for count, drawn in one.seen.items()}
    expected, gradient = outer_loss_and_gradient(
        one, task, rate=RATE, steps=STEPS, psi=meta.functional.subset(subset), gamma=GAMMA
    )
    assert loss.item() == pytest.approx(expected.item(), rel=1e-9)
    assert total_error({name: p.grad for name, p in one.named_parameters()}, gradient) < 1e-8


def test_other_tasks_get_other_numbers_and_a_seed_repeats_them() -> None:
    task, meta = task_of(vectors), MetaLearner(network(), maml(RATE), randomness="same")

    def losses() -> list[float]:
        with torch.random.fork_rng():
            torch.manual_seed(5)
            first = [gradient.loss.item() for gradient in meta.task_gradients([task, task])]
            with torch.no_grad():
                return [*first, meta([task]).item()]

    found = losses()
    assert len(set(found)) == 3
    assert losses() == found


def test_adaptation_and_the_gram_matrix_are_those_of_one_task() -> None:
    task, meta = task_of(vectors), MetaLearner(network(), maml(RATE), randomness="same")
    x, y = task.support_x, task.support_y
    for use in (
        lambda: meta.adapted_params(x, y, steps=3)["hidden.weight"],
        lambda: meta.condition_number(x, y, subset="all"),
        lambda: torch.tensor(meta.choose_steps(x, y, longest=2).losses),
    ):
        results = []
        for seed in (1, 1, 2):
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                results.append(use())
        assert torch.equal(results[0], results[1])
        assert not torch.equal(results[0], results[2])


def test_wrong_options() -> None:
    with pytest.raises(ValueError, match="randomness must be 'error' or 'same', not 'freeze'"):
        MetaLearner(network(), randomness="freeze")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="randomness='same' needs compile=False"):
        MetaLearner(network(), randomness="same", compile=True)
