"""Any module that ends in a linear layer: outputs, purity, subsets, and clear refusals."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from firststep import Conditioning, Task, condition_number, log_eigenvalue_variance, maml
from firststep.functional import FunctionalModule, Learner, adapt, meta_gradient, support_gram
from formulas import gradient_descent
from networks import OwnNetwork, generator, small_conv, small_resnet, small_task
from reference import total_error, unrolled_meta_gradient


def own_model() -> FunctionalModule:
    return FunctionalModule(OwnNetwork().double(), classifier="head.out")


def test_output_is_the_module_s_own() -> None:
    model = own_model()
    images = small_task().support_x
    output = model(model.params(), images)
    torch.testing.assert_close(output.logits, model.module(images))
    layer = model.module.get_submodule("head.out")
    torch.testing.assert_close(output.logits, layer(output.features))


def test_the_module_is_never_changed() -> None:
    model = own_model()
    before = {name: value.clone() for name, value in model.module.state_dict().items()}
    task = small_task()
    adapt(Learner(model, maml(0.5)), task.support_x, task.support_y, steps=2)
    meta_gradient(Learner(model, maml(0.5)), [task], steps=2, conditioning=Conditioning(subset="all"))
    after = model.module.state_dict()
    assert before.keys() == after.keys()  # running statistics and step counters among them
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(parameter.grad is None for parameter in model.module.parameters())


def test_condition_number_of_one_s_own_model_in_three_lines() -> None:
    model, task = OwnNetwork().double(), small_task()
    model = FunctionalModule(model, classifier="head.out")
    gram = support_gram(model, task.support_x, task.support_y, subset="all")
    assert condition_number(gram) > 1


def test_subsets_by_name() -> None:
    conv, resnet, own = FunctionalModule(small_conv()), FunctionalModule(small_resnet()), own_model()
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
    result = meta_gradient(Learner(model, maml(0.1)), [task], steps=1)
    assert result.params.keys() == model.params().keys()


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, 6)
        self.dropout: nn.Module = nn.Identity()
        self.classifier = nn.Linear(6, 3)

    def forward(self, points: Tensor) -> Tensor:
        return self.classifier(self.dropout(self.hidden(points)))


@pytest.mark.parametrize("subset", ["ebn", "cls+ebn"])
def test_a_subset_that_a_network_lacks_says_what_there_is(subset: str) -> None:
    with pytest.raises(ValueError, match=r"Perceptron has no parameters.*hidden\.weight"):
        FunctionalModule(Perceptron()).subset(subset)
    with pytest.raises(ValueError, match="Linear has no parameters for the subset 'emb'"):
        FunctionalModule(nn.Linear(4, 3)).subset("emb")


@pytest.mark.parametrize("subset", ["nonsense", "cls+nonsense"])
def test_an_unknown_subset_says_what_there_is(subset: str) -> None:
    with pytest.raises(
        ValueError, match=r"unknown parameter subset 'nonsense': use cls, emb, ebn.*hidden\.weight"
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
    with pytest.raises(ValueError, match="embedding='conv9' is no module of Perceptron"):
        FunctionalModule(Perceptron(), embedding="conv9")


def test_a_classifier_that_is_not_the_end_is_refused() -> None:
    model = FunctionalModule(Perceptron(), classifier="hidden")
    with pytest.raises(
        ValueError,
        match=r"the output of Perceptron must be that of its linear layer 'hidden'.*use classifier=",
    ):
        model(model.params(), torch.zeros(2, 4))


@pytest.mark.parametrize(
    "layer",
    [nn.Dropout(0.5), nn.AlphaDropout(0.5), nn.GRU(6, 6, 2, dropout=0.5)],
    ids=lambda one: type(one).__name__,
)
def test_dropout_is_refused_in_training_mode_only(layer: nn.Module) -> None:
    module = Perceptron()
    module.dropout = layer
    model, task = FunctionalModule(module), small_task()
    for call in (
        model.check_deterministic,
        lambda: meta_gradient(Learner(model, maml()), [task]),
        lambda: adapt(Learner(model, maml()), task.support_x, task.support_y),
        lambda: support_gram(model, task.support_x, task.support_y),
    ):
        with pytest.raises(ValueError, match="'dropout' drops units at random"):
            call()
    module.eval()
    model.check_deterministic()


def test_params_are_the_module_s_own_and_the_gram_reaches_them() -> None:
    model, task = own_model(), small_task()
    for name, value in model.module.named_parameters():
        assert model.params()[name] is value
    log_eigenvalue_variance(support_gram(model, task.support_x, task.support_y)).backward()
    assert model.module.stem.weight.grad is not None


def test_a_missing_parameter_is_named() -> None:
    model, task = own_model(), small_task()
    params = {name: value for name, value in model.params().items() if name != "stem.bias"}
    x, y = task.support_x, task.support_y
    for call in (
        lambda: support_gram(model, x, y, params=params),
        lambda: adapt(Learner(model, maml(), params=params), x, y),
        lambda: meta_gradient(Learner(model, maml(), params=params), [task]),
    ):
        with pytest.raises(ValueError, match=r"params lacks stem\.bias of OwnNetwork"):
            call()


def test_one_hook_however_many_wrappers_copies_and_pickles() -> None:
    module, x = OwnNetwork().double(), small_task().support_x
    first = FunctionalModule(module)
    copies = [module, copy.deepcopy(module), pickle.loads(pickle.dumps(module)), copy.deepcopy(first).module]
    for one in copies:
        model = FunctionalModule(one)
        output = model(model.params(), x)
        torch.testing.assert_close(output.logits, first(first.params(), x).logits, rtol=0, atol=0)
        assert len(model.module.get_submodule("head.out")._forward_hooks) == 1
    assert module.state_dict().keys() == OwnNetwork().state_dict().keys()


def test_buffers_are_copied_in_training_mode_only_and_read_as_they_are() -> None:
    module, x = OwnNetwork().double(), small_task().support_x
    model = FunctionalModule(module)
    for mode in (True, False):
        module.train(mode)
        before = {name: value.clone() for name, value in module.named_buffers()}
        first = model(model.params(), x).logits
        assert all(torch.equal(before[name], value) for name, value in module.named_buffers())
    with torch.no_grad():
        module.stem_norm.running_mean.add_(1.0)
    assert not torch.allclose(model(model.params(), x).logits, first)


class Named(nn.Module):
    """A network whose linear layers are these, in this order; the last of them is called last."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        for name in names:
            setattr(self, name, nn.Linear(4, 4))

    def forward(self, points: Tensor) -> Tensor:
        return points


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("fc", "other"), "fc"),
        (("head", "classifier"), "classifier"),
        (("a", "b"), "b"),
        (("head", "z"), "head"),
    ],
)
def test_the_classifier_is_found(names: tuple[str, ...], found: str) -> None:
    assert FunctionalModule(Named(*names)).classifier == found


def test_networks_without_a_linear_layer_and_with_nothing_else() -> None:
    with pytest.raises(ValueError, match=r"Flatten has no nn\.Linear"):
        _ = FunctionalModule(nn.Flatten()).classifier
    model = FunctionalModule(nn.Linear(4, 3))
    assert model.subset("cls") == ("weight", "bias")
    assert model(model.params(), torch.ones(2, 4)).logits.shape == (2, 3)


@dataclass
class Answer:
    logits: Tensor


class Text(nn.Module):
    """Token embeddings averaged where the mask says so, as a transformer's interface has it."""

    def __init__(self, form: str = "tensor") -> None:
        super().__init__()
        self.form = form
        self.tokens = nn.Embedding(11, 5)
        self.classifier = nn.Linear(5, 3)

    def forward(self, ids: Tensor, mask: Tensor) -> object:
        weights = mask.unsqueeze(-1)
        logits = self.classifier((self.tokens(ids) * weights).sum(1) / weights.sum(1))
        return {"tensor": logits, "dict": {"logits": logits}, "object": Answer(logits)}[self.form]


def text_task(kind: type) -> Task:
    source = generator(4)

    def batch(count: int) -> tuple[Tensor, Tensor]:
        ids = torch.randint(0, 11, (count, 7), generator=source)
        return ids, torch.rand(count, 7, generator=source, dtype=torch.float64).round() + 0.1

    inputs = [batch(6), batch(9)]
    if kind is dict:
        inputs = [dict(zip(("ids", "mask"), parts, strict=True)) for parts in inputs]  # type: ignore[misc]
    return Task(inputs[0], torch.arange(3).repeat(2), inputs[1], torch.arange(3).repeat(3))


@pytest.mark.parametrize("kind", [tuple, dict])
@pytest.mark.parametrize("form", ["tensor", "dict", "object"])
def test_inputs_of_several_tensors_and_outputs_of_any_form(kind: type, form: str) -> None:
    torch.manual_seed(0)
    module = Text(form).double()
    model, task = FunctionalModule(module), text_task(kind)
    result = meta_gradient(
        Learner(model, maml(0.3)), [task], steps=2, conditioning=Conditioning(subset="all")
    )
    module.form = "tensor"
    plain = text_task(tuple)
    expected, grads, _ = unrolled_meta_gradient(
        module,
        plain,
        gradient_descent(0.3),
        {},
        steps=2,
        moving=list(model.params()),
        psi=list(model.params()),
        gamma=1.0,
    )
    assert result.loss.item() == pytest.approx(expected.item(), rel=1e-10)
    assert total_error(result.params, grads) < 1e-8
