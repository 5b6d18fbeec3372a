"""``meta.adapt``: a query's logits depend on the support set and on itself alone, in either mode."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import firststep as fs
from networks import OwnNetwork, shallow_conv, shallow_task

TASK = shallow_task()


def normalised(norm: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 4, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).double()


class NormAndActivation(nn.BatchNorm2d):
    """A batch norm with more settings than torch's, like timm's."""

    def __init__(self, channels: int, activation: type[nn.Module] = nn.ReLU, **options: bool) -> None:
        super().__init__(channels, **options)
        self.activation = activation()

    def forward(self, images: Tensor) -> Tensor:
        return self.activation(super().forward(images))


class OneDimensional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(64, 8), nn.BatchNorm1d(8, affine=False), nn.Tanh())
        self.fc = nn.Linear(8, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(self.body(images.flatten(1)))


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "ours": shallow_conv,
    "batch norm": lambda: OwnNetwork().double(),
    "batch norm without buffers": lambda: normalised(nn.BatchNorm2d(4, track_running_stats=False)),
    "batch norm of a subclass": lambda: normalised(NormAndActivation(4, nn.SiLU)),
    "one dimension": lambda: OneDimensional().double(),
    "instance norm": lambda: normalised(nn.InstanceNorm2d(4, affine=True, track_running_stats=True)),
    "none": lambda: normalised(nn.Identity()),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("head", ["per-class", "shared"])
def test_one_query_at_a_time_in_either_mode(name: str, head: str) -> None:
    network = NETWORKS[name]()
    meta = fs.MetaLearner(network, fs.maml(0.3), steps=2, head=head)
    before = copy.deepcopy(network.state_dict())
    classifier = meta.adapt(*TASK[:2])
    assert not classifier.training
    params = meta.adapted_params(*TASK[:2], steps=2)
    in_training = meta.functional(params, TASK.support_x).logits
    expected = classifier(TASK.query_x)
    for used in (classifier, classifier.train(), copy.deepcopy(classifier), classifier.eval()):
        torch.testing.assert_close(used(TASK.support_x), in_training)
        one_by_one = torch.cat([used(query[None]) for query in TASK.query_x])
        torch.testing.assert_close(one_by_one, expected)
        torch.testing.assert_close(used(TASK.query_x), expected)
    again = pickle.loads(pickle.dumps(classifier)).train()
    torch.testing.assert_close(again(TASK.query_x[:1]), expected[:1])
    assert network.training
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_statistics_that_were_used_are_kept() -> None:
    """A network in eval() mode adapts by its running statistics, and so its copy classifies by them."""
    network = OwnNetwork().double().eval()
    network.stem_norm.running_mean.fill_(0.3)
    meta = fs.MetaLearner(network, fs.maml(0.3), steps=2)
    classifier = meta.adapt(*TASK[:2])
    expected = meta.functional(meta.adapted_params(*TASK[:2], steps=2), TASK.query_x).logits
    for used in (classifier, classifier.train()):
        torch.testing.assert_close(used(TASK.query_x), expected)


def test_it_classifies_as_the_command_does() -> None:
    from firststep.evaluation import ImageSupport, adapt_to_images

    meta = fs.MetaLearner(OwnNetwork().double(), fs.maml(0.3), steps=2)
    adapted = adapt_to_images(meta, ImageSupport(list("abc"), *TASK[:2]), steps=2)
    probabilities = meta.adapt(*TASK[:2]).train()(TASK.query_x).softmax(1)
    torch.testing.assert_close(adapted.probabilities(TASK.query_x), probabilities)


def test_dropout_is_off_in_what_is_returned() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.BatchNorm1d(64), nn.Linear(64, 3)).double()
    classifier = fs.MetaLearner(network, steps=1, randomness="same").adapt(*TASK[:2])
    assert torch.equal(classifier(TASK.query_x), classifier(TASK.query_x))
    assert not torch.equal(classifier.train()(TASK.query_x), classifier(TASK.query_x))


def test_a_norm_in_two_places_is_refused_by_name() -> None:
    norm = nn.BatchNorm1d(64)
    network = nn.Sequential(nn.Flatten(), norm, nn.Tanh(), norm, nn.Linear(64, 3)).double()
    with pytest.raises(fs.FirststepError, match=r"normalises in two places .* eval\(\) mode"):
        fs.MetaLearner(network, steps=1).adapt(*TASK[:2])
    fs.MetaLearner(network.eval(), steps=1).adapt(*TASK[:2])
