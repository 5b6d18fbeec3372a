"""Any module that ends in a linear layer: outputs, purity, subsets, and clear refusals."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from firststep import Conditioning, Learner, adapt, condition_number, maml, meta_gradient, support_gram
from networks import OwnNetwork, generator, small_conv, small_resnet, small_task


def own_learner() -> Learner:
    return Learner(OwnNetwork().double(), classifier="head.out")


def test_output_is_the_module_s_own() -> None:
    learner = own_learner()
    images = small_task().support_images
    output = learner(learner.params(), images)
    torch.testing.assert_close(output.logits, learner.module(images))
    layer = learner.module.get_submodule("head.out")
    torch.testing.assert_close(output.logits, layer(output.features))


def test_the_module_is_never_changed() -> None:
    learner = own_learner()
    before = {name: value.clone() for name, value in learner.module.state_dict().items()}
    task = small_task()
    adapt(learner, maml(0.5), task.support_images, task.support_labels, steps=2)
    meta_gradient(learner, maml(0.5), [task], steps=2, conditioning=Conditioning(subset="all"))
    after = learner.module.state_dict()
    assert before.keys() == after.keys()  # running statistics and step counters among them
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(parameter.grad is None for parameter in learner.module.parameters())
    assert not learner.module.get_submodule("head.out")._forward_hooks


def test_condition_number_of_one_s_own_model_in_three_lines() -> None:
    model, task = OwnNetwork().double(), small_task()
    learner = Learner(model, classifier="head.out")
    gram = support_gram(learner, task.support_images, task.support_labels, subset="all")
    assert condition_number(gram) > 1


def test_subsets_by_name() -> None:
    conv, resnet, own = Learner(small_conv()), Learner(small_resnet()), own_learner()
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
    chosen = Learner(own.module, "head.out", embedding="stem_norm", embedding_norm="head.norm")
    assert chosen.subset("emb+ebn") == (
        "stem_norm.weight",
        "stem_norm.bias",
        "head.norm.weight",
        "head.norm.bias",
    )


def test_frozen_parameters_stay_out() -> None:
    module = OwnNetwork().double()
    module.stem.weight.requires_grad_(False)
    learner, task = Learner(module, "head.out"), small_task()
    assert "stem.weight" not in learner.params()
    assert "stem.weight" not in learner.subset("all")
    result = meta_gradient(learner, maml(0.1), [task], steps=1)
    assert result.params.keys() == learner.params().keys()


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
        Learner(Perceptron()).subset(subset)


@pytest.mark.parametrize("subset", ["nonsense", "cls+nonsense"])
def test_an_unknown_subset_says_what_there_is(subset: str) -> None:
    with pytest.raises(
        ValueError, match=r"unknown parameter subset 'nonsense': it is cls, emb, ebn.*hidden\.weight"
    ):
        Learner(Perceptron()).subset(subset)


def test_a_pattern_without_a_match_says_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"no parameter matches 'body\.\*'; there are hidden\.weight"):
        Learner(Perceptron()).subset(["body.*"])


def test_a_wrong_classifier_says_which_linear_layers_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"'fc' does not name an nn.Linear of Perceptron.*\['hidden', 'classifier'\]"
    ):
        Learner(Perceptron(), classifier="fc")
    with pytest.raises(ValueError, match="embedding='conv9' is not a part of Perceptron"):
        Learner(Perceptron(), embedding="conv9")


def test_a_classifier_that_is_not_the_end_is_refused() -> None:
    learner = Learner(Perceptron(), classifier="hidden")
    with pytest.raises(ValueError, match="the output of Perceptron must be that of 'hidden'"):
        learner(learner.params(), torch.zeros(2, 4))


def test_dropout_is_refused_in_training_mode_only() -> None:
    learner = Learner(Perceptron(dropout=0.5))
    with pytest.raises(ValueError, match="'dropout' drops units at random"):
        learner(learner.params(), torch.zeros(2, 4))
    learner.module.eval()
    assert learner(learner.params(), torch.zeros(2, 4)).logits.shape == (2, 3)


def test_adaptation_is_gradient_descent() -> None:
    """Against torch.optim.SGD on the module itself."""
    module, task = small_conv(), small_task()
    trajectory = adapt(Learner(module), maml(0.3), task.support_images, task.support_labels, steps=3)
    optimiser = torch.optim.SGD(module.parameters(), 0.3)
    for k in range(3):
        loss = F.cross_entropy(module(task.support_images), task.support_labels)
        assert trajectory.seen[k].loss.item() == pytest.approx(loss.item(), rel=1e-12)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(
                trajectory.params[k + 1][name], parameter.detach(), rtol=1e-9, atol=1e-12
            )


def test_adaptation_holds_no_graph() -> None:
    learner, task = Learner(small_conv()), small_task(seed=int(generator(3).initial_seed()))
    trajectory = adapt(learner, maml(), task.support_images, task.support_labels, steps=2, subset="all")
    assert len(trajectory.params) == 3
    tensors = [value for params in trajectory.params for value in params.values()]
    tensors += [value for seen in trajectory.seen for value in seen if value is not None]
    assert not any(value.requires_grad or value.grad_fn for value in tensors)
    with pytest.raises(ValueError, match="steps must not be negative"):
        adapt(learner, maml(), task.support_images, task.support_labels, steps=-1)
