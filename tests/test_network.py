"""Any module that ends in a linear layer: outputs, purity, subsets, and clear refusals."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep import (
    Conditioning,
    FunctionalModule,
    adapt,
    condition_number,
    maml,
    meta_gradient,
    support_gram,
)
from networks import OwnNetwork, generator, small_conv, small_resnet, small_task


def own_learner() -> FunctionalModule:
    return FunctionalModule(OwnNetwork().double(), classifier="head.out")


def test_output_is_the_module_s_own() -> None:
    model = own_learner()
    images = small_task().support_x
    output = model(model.params(), images)
    torch.testing.assert_close(output.logits, model.module(images))
    layer = model.module.get_submodule("head.out")
    torch.testing.assert_close(output.logits, layer(output.features))


def test_the_module_is_never_changed() -> None:
    model = own_learner()
    before = {name: value.clone() for name, value in model.module.state_dict().items()}
    task = small_task()
    adapt(model, maml(0.5), task.support_x, task.support_y, steps=2)
    meta_gradient(model, maml(0.5), [task], steps=2, conditioning=Conditioning(subset="all"))
    after = model.module.state_dict()
    assert before.keys() == after.keys()  # running statistics and step counters among them
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(parameter.grad is None for parameter in model.module.parameters())
    assert not model.module.get_submodule("head.out")._forward_hooks


def test_condition_number_of_one_s_own_model_in_three_lines() -> None:
    model, task = OwnNetwork().double(), small_task()
    model = FunctionalModule(model, classifier="head.out")
    gram = support_gram(model, task.support_x, task.support_y, subset="all")
    assert condition_number(gram) > 1


def test_subsets_by_name() -> None:
    conv, resnet, own = FunctionalModule(small_conv()), FunctionalModule(small_resnet()), own_learner()
    assert conv.subset("cls") == ("classifier.weight", "classifier.bias")
    assert conv.subset("emb") == ("blocks.3.conv.weight", "blocks.3.conv.bias")
    assert conv.subset("ebn") == ("blocks.3.norm.weight", "blocks.3.norm.bias")
    assert set(conv.subset("cls+emb+ebn")) == {*conv.subset("cls"), *conv.subset("emb"), *conv.subset("ebn")}
    assert conv.subset("all") == tuple(conv.params())
    assert set(conv.subset("body")) == set(conv.params()) - set(conv.subset("cls"))
    assert resnet.subset("emb") == ("blocks.1.conv2.weight",)  # not the shortcut's convolution
    assert own.subset("emb") == ("stem.weight", "stem.bias")
    assert own.subset("ebn") == ("stem_norm.weight", "stem_norm.bias")
    assert own.subset(["*.bias"]) == ("stem.bias", "stem_norm.bias", "head.norm.bias", "head.out.bias")
    chosen = FunctionalModule(own.module, "head.out", embedding="stem_norm", embedding_norm="head.norm")
    assert chosen.subset("emb+ebn") == (
        "stem_norm.weight",
        "stem_norm.bias",
        "head.norm.weight",
        "head.norm.bias",
    )


def test_frozen_parameters_stay_out() -> None:
    module = OwnNetwork().double()
    module.stem.weight.requires_grad_(False)
    model, task = FunctionalModule(module, "head.out"), small_task()
    assert "stem.weight" not in model.params()
    assert "stem.weight" not in model.subset("all")
    result = meta_gradient(model, maml(0.1), [task], steps=1)
    assert result.params.keys() == model.params().keys()


class Perceptron(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, 6)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(6, 3)

    def forward(self, points: Tensor) -> Tensor:
        return self.classifier(self.dropout(self.hidden(points)))


@pytest.mark.parametrize("subset", ["emb", "ebn", "cls+emb"])
def test_a_subset_that_a_network_lacks_says_what_there_is(subset: str) -> None:
    with pytest.raises(ValueError, match=r"Perceptron has no parameters.*hidden\.weight"):
        FunctionalModule(Perceptron()).subset(subset)


@pytest.mark.parametrize("subset", ["nonsense", "cls+nonsense"])
def test_an_unknown_subset_says_what_there_is(subset: str) -> None:
    with pytest.raises(
        ValueError, match=r"unknown parameter subset 'nonsense': it is cls, emb, ebn.*hidden\.weight"
    ):
        FunctionalModule(Perceptron()).subset(subset)


def test_a_pattern_without_a_match_says_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"no parameter matches 'body\.\*'; there are hidden\.weight"):
        FunctionalModule(Perceptron()).subset(["body.*"])


def test_a_wrong_classifier_says_which_linear_layers_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"'fc' does not name an nn.Linear of Perceptron.*\['hidden', 'classifier'\]"
    ):
        FunctionalModule(Perceptron(), classifier="fc")
    with pytest.raises(ValueError, match="embedding='conv9' is not a part of Perceptron"):
        FunctionalModule(Perceptron(), embedding="conv9")


def test_a_classifier_that_is_not_the_end_is_refused() -> None:
    model = FunctionalModule(Perceptron(), classifier="hidden")
    with pytest.raises(ValueError, match="the output of Perceptron must be that of 'hidden'"):
        model(model.params(), torch.zeros(2, 4))


def test_dropout_is_refused_in_training_mode_only() -> None:
    model = FunctionalModule(Perceptron(dropout=0.5))
    with pytest.raises(ValueError, match="'dropout' drops units at random"):
        model(model.params(), torch.zeros(2, 4))
    model.module.eval()
    assert model(model.params(), torch.zeros(2, 4)).logits.shape == (2, 3)


def test_adaptation_is_gradient_descent() -> None:
    """Against torch.optim.SGD on the module itself."""
    module, task = small_conv(), small_task()
    trajectory = adapt(FunctionalModule(module), maml(0.3), task.support_x, task.support_y, steps=3)
    optimiser = torch.optim.SGD(module.parameters(), 0.3)
    for k in range(3):
        loss = F.cross_entropy(module(task.support_x), task.support_y)
        assert trajectory.seen[k].loss.item() == pytest.approx(loss.item(), rel=1e-12)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(
                trajectory.params[k + 1][name], parameter.detach(), rtol=1e-9, atol=1e-12
            )


def test_adaptation_holds_no_graph() -> None:
    model, task = FunctionalModule(small_conv()), small_task(seed=int(generator(3).initial_seed()))
    trajectory = adapt(model, maml(), task.support_x, task.support_y, steps=2, subset="all")
    assert len(trajectory.params) == 3
    tensors = [value for params in trajectory.params for value in params.values()]
    tensors += [value for seen in trajectory.seen for value in seen if value is not None]
    assert not any(value.requires_grad or value.grad_fn for value in tensors)
    with pytest.raises(ValueError, match="steps must not be negative"):
        adapt(model, maml(), task.support_x, task.support_y, steps=-1)
