"""``--network``: a user's own, timm's and Hugging Face's networks, from building to a trained run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from firststep import FirststepError
from firststep.backbones import build_external, freeze, native_image_size
from firststep.cli import main
from firststep.training import TrainConfig, load_trained, train
from runs import TINY, TINY_FLAGS
from third_party import import_timm, import_transformers

MINE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, ways, channels):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, 4, 3, stride=4), nn.ReLU(), nn.Flatten(), nn.Dropout())
        self.fc = nn.Linear(64, ways)

    def forward(self, x):
        return self.fc(self.body(x))

def make(ways, channels):
    return Net(ways, channels)

def broken():
    raise RuntimeError("no such luck")

number = 5
"""
OWN = replace(TINY, filters=None, image_size=16)


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "my_networks_here.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return "my_networks_here"


def test_a_network_of_ones_own_trains_and_is_loaded_again(
    own_module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert TINY_FLAGS[:2] == ["--filters", "4"]
    flags = TINY_FLAGS[2:]
    network = ["--network", f"{own_module}:make", "--freeze", "body.0.*"]
    assert main(["train", *network, *flags, "--out", "run"]) == 0
    assert main(["evaluate", "run", "--episodes", "2", "--steps", "0", "1"]) == 0
    weights = load_file(tmp_path / "run" / "checkpoints" / "last.safetensors")
    torch.manual_seed(0)
    namespace: dict[str, object] = {}
    exec(MINE, namespace)
    start = namespace["make"](5, 1).state_dict()  # type: ignore[operator]
    assert torch.equal(weights["network.body.0.weight"], start["body.0.weight"])  # frozen, and seeded
    assert not torch.equal(weights["network.fc.weight"], start["fc.weight"])
    assert main(["train", *network, *flags]) == 0  # the default folder has the network's name
    assert list((tmp_path / "runs").glob("glyphs-my_networks_here-make-*"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("my_networks_here:broken", "my_networks_here:broken() failed: RuntimeError: no such luck"),
        ("my_networks_here:number", "my_networks_here:number() failed"),
        ("my_networks_here:absent", "cannot import 'my_networks_here:absent'"),
        ("nowhere:make", "cannot import 'nowhere:make': No module named 'nowhere'"),
        ("conv4", "use package.module:NAME, timm:NAME or hf:NAME"),
        ("timm:", "use package.module:NAME, timm:NAME or hf:NAME"),
    ],
)
def test_mistakes_are_one_line(
    name: str, words: str, own_module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--network", name, "--updates", "1", "--image-size", "16", "--out", "run"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1
    assert not Path("run/run.json").exists()


def test_options_that_do_not_go_together() -> None:
    with pytest.raises(FirststepError, match="`filters` goes with `backbone`"):
        TrainConfig(network="a:b", filters=4)
    with pytest.raises(FirststepError, match="`pretrained` goes with `network`"):
        TrainConfig(pretrained="default")


def test_freezing_by_name() -> None:
    network = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    assert freeze(network, "0.*") == 2
    assert [parameter.requires_grad for parameter in network.parameters()] == [False, False, True, True]
    with pytest.raises(FirststepError, match=r"`freeze` body\.\*: no parameter has such a name"):
        freeze(network, "body.*")
    with pytest.raises(FirststepError, match="leaves nothing to learn"):
        freeze(network, "*")


def test_timm_with_its_own_size_and_normalisation(tmp_path: Path) -> None:
    timm = import_timm()
    name = "timm:test_vit.r160_in1k"
    assert native_image_size(name) == 160
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    network = build_external(name, ways=3, image_size=32, channels=3, seed=1, mean=mean, std=std)
    again = build_external(name, ways=3, image_size=32, channels=3, seed=1, mean=mean, std=std)
    pixels = torch.rand(2, 3, 32, 32)
    given = (pixels - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
    assert torch.equal(network(given), again(given))  # seeded
    assert network(given).shape == (2, 3)
    facts = timm.data.resolve_model_data_config(network)
    assert facts["mean"] != mean, "choose a model with another normalisation"
    plain = timm.create_model("test_vit.r160_in1k", num_classes=3, img_size=32)
    plain.load_state_dict(network.state_dict())
    own = [torch.tensor(facts[part])[:, None, None] for part in ("mean", "std")]
    torch.testing.assert_close(network(given), plain((pixels - own[0]) / own[1]), rtol=1e-4, atol=1e-5)
    # Weights go through timm's own loader, which leaves out a classifier of another size.
    save_file(network.state_dict(), tmp_path / "weights.safetensors")
    loaded = build_external(
        name, ways=4, image_size=32, channels=3, seed=2, pretrained=str(tmp_path / "weights.safetensors")
    )
    assert not loaded.training
    ours, theirs = loaded.state_dict(), network.state_dict()
    same = [
        key for key in theirs if ours[key].shape == theirs[key].shape and torch.equal(ours[key], theirs[key])
    ]
    assert "blocks.0.attn.qkv.weight" in same
    assert ours["head.weight"].shape[0] == 4
    with pytest.raises(FirststepError, match="there is no such file"):
        build_external(name, ways=4, image_size=32, channels=3, seed=2, pretrained="absent.safetensors")
    with pytest.raises(FirststepError, match=r"timm has no nothing_at_all|timm cannot make nothing_at_all"):
        build_external("timm:nothing_at_all", ways=4, image_size=32, channels=3, seed=2)


def test_a_timm_network_trains_from_the_command_line(tmp_path: Path) -> None:
    import_timm()
    config = replace(
        OWN, network="timm:test_resnet.r160_in1k", image_size=32, head="shared", freeze="layer1.*"
    )
    run = train(config, tmp_path / "run")
    meta = load_trained(run.folder).meta
    assert meta.functional.head == "shared"
    frozen = [name for name, value in meta.named_parameters() if not value.requires_grad]
    assert frozen
    assert all(".layer1." in name for name in frozen)


def test_a_model_of_hugging_face_from_a_folder(tmp_path: Path) -> None:
    transformers = import_transformers()
    config = transformers.ViTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=16,
        patch_size=8, num_channels=1, num_labels=7,
    )  # fmt: skip
    model = transformers.ViTForImageClassification(config)
    model.save_pretrained(tmp_path / "vit")
    (tmp_path / "vit" / "preprocessor_config.json").write_text(
        json.dumps({"image_processor_type": "ViTImageProcessor", "image_mean": [0.5], "image_std": [0.25]})
    )
    name = f"hf:{tmp_path / 'vit'}"
    assert native_image_size(name) == 16
    network = build_external(name, ways=5, image_size=16, channels=1, seed=0, pretrained="default")
    ours, theirs = network.state_dict(), model.state_dict()
    assert ours["classifier.weight"].shape == (5, 8)
    body = [key for key in theirs if not key.startswith("classifier")]
    assert all(torch.equal(ours[key], theirs[key]) for key in body)
    run = train(
        replace(OWN, network=name, pretrained="default", image_size=None, freeze="vit.embeddings.*"),
        tmp_path / "run",
    )
    weights = load_file(run.checkpoint_path("last"))
    key = next(key for key in body if "embeddings" in key)
    assert torch.equal(weights[f"network.{key}"], theirs[key])
    with pytest.raises(FirststepError, match=r"transformers cannot make .*nowhere|transformers cannot read"):
        build_external(f"hf:{tmp_path / 'nowhere'}", ways=5, image_size=16, channels=1, seed=0)
