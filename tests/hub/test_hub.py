"""Models for the Hub: a local round trip, a model card from the records, and no path of this machine."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard, PyTorchModelHubMixin, hub_mixin
from huggingface_hub.errors import LocalEntryNotFoundError
from torch import nn

import firststep as fs
from firststep.deployment import load_deployed, make_deployable, save_adapted
from firststep.evaluation import EvaluationSettings, ImageSupport, adapt_to_images
from firststep.hub import HubClassifier, HubLearner
from firststep.training import load_trained, open_data
from runs import TINY, tiny_run
from warm_cli import WarmCommands


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with paths of this machine in its configuration, and a stored test."""
    folder = tmp_path_factory.mktemp("private") / "run"
    made = tiny_run(folder, log="none", head="shared")
    made.change(replace(made.config, cache=folder.parent / "cache", init=str(folder.parent / "weights")))
    trained = load_trained(folder)
    data = open_data(TINY)
    trained.evaluate(data, EvaluationSettings(steps=(0, 1, 2), episodes=4)).save(
        folder / "evaluations" / "test"
    )
    other = trained.evaluate(data, EvaluationSettings(steps=(0,), episodes=2))
    other.provenance["checkpoint"] = "another"
    other.save(folder / "evaluations" / "of-another-checkpoint")
    return folder


def private_words(folder: Path, secret: str) -> list[str]:
    """Return the files that contain a part of this machine's paths."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) >= 2
    return [path.name for path in files if secret.encode() in path.read_bytes()]


def test_a_learner_comes_back_as_a_run_without_paths(run: Path, tmp_path: Path, warm: WarmCommands) -> None:
    saved = tmp_path / "saved"
    learner = HubLearner(run, licence="mit")
    learner.save_pretrained(saved)
    found = HubLearner.from_pretrained(str(saved))
    assert found.licence == "mit"
    for name, value in learner.meta.state_dict().items():
        assert torch.equal(found.meta.state_dict()[name], value)
    assert found.trained.checkpoint == learner.trained.checkpoint
    assert len(found.evaluations()) == 1
    assert found.evaluations()[0].rows() == learner.evaluations()[0].rows()
    assert {"run.json", "test.json"} <= set(private_words(run, run.parent.name))
    assert private_words(saved, run.parent.name) == []
    again = tmp_path / "again"
    found.save_pretrained(again)
    assert (again / "README.md").read_text() == (saved / "README.md").read_text()
    done = warm.run(["evaluate", str(saved), "--episodes", "2", "--steps", "0", "1"])
    assert done.returncode == 0, done.stderr


def test_the_card_says_what_the_records_say(run: Path, tmp_path: Path) -> None:
    learner = HubLearner(run, licence="mit")
    card = learner.generate_model_card()
    assert isinstance(card, ModelCard)
    assert card.data.license == "mit"
    assert card.data.library_name == "firststep"
    text = card.text
    record = learner.trained.run.record
    for words in (
        record.data_fingerprint,
        "4 of 2 tasks, seed 0",
        "its shared head takes any number of classes",
    ):
        assert words in text
    for row in learner.evaluations()[0].rows():
        assert f"| {row['step']} | {row['accuracy']:.1f} ± {row['ci95']:.1f} |" in text
    untested = tmp_path / "untested"
    shutil.copytree(run, untested, ignore=shutil.ignore_patterns("evaluations"))
    plain = HubLearner(untested).generate_model_card()
    assert "Not tested." in plain.text
    assert plain.data.license == "unknown"
    assert "no licence of the weights" in plain.text


def test_a_model_is_read_from_the_cache_of_the_hub_offline(run: Path, tmp_path: Path) -> None:
    """The folders that ``huggingface_hub`` makes when it downloads, made by hand: no network is needed."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "cache" / "models--owner--name"
    HubLearner(run).save_pretrained(repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    found = HubLearner.from_pretrained("owner/name", cache_dir=tmp_path / "cache", local_files_only=True)
    assert found.trained.checkpoint == HubLearner(run).trained.checkpoint
    with pytest.raises(LocalEntryNotFoundError):
        HubLearner.from_pretrained("owner/other", cache_dir=tmp_path / "cache", local_files_only=True)


def test_what_is_pushed_can_be_loaded(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the network is replaced: the folder that would be uploaded is kept."""

    class Kept:
        def __init__(self, **options: object) -> None: ...

        def create_repo(self, repo_id: str, **options: object) -> object:
            return type("Url", (), {"repo_id": repo_id})()

        def upload_folder(self, *, repo_id: str, folder_path: str, **options: object) -> str:
            shutil.copytree(folder_path, tmp_path / "uploaded")
            return repo_id

    monkeypatch.setattr(hub_mixin, "HfApi", Kept)
    assert HubLearner(run, licence="mit").push_to_hub("owner/name") == "owner/name"
    assert HubLearner.from_pretrained(str(tmp_path / "uploaded")).meta.steps == 2
    assert "license: mit" in (tmp_path / "uploaded" / "README.md").read_text()


def test_a_run_is_not_saved_onto_itself(run: Path) -> None:
    with pytest.raises(fs.FirststepError, match="is the run itself"):
        HubLearner(run).save_pretrained(run)


def test_an_adapted_classifier_comes_back_with_its_answers(run: Path, tmp_path: Path) -> None:
    trained = load_trained(run)
    pixels = np.random.default_rng(0).integers(0, 256, (6, 16, 16, 1), dtype=np.uint8)
    images = torch.from_numpy(trained.preprocessing.normalise(pixels))
    support = ImageSupport(["a", "b"], images, torch.arange(2).repeat(3))
    model = adapt_to_images(trained.meta, support, validate=True)
    made = make_deployable(model, trained.preprocessing, run="mine", config=trained.config.to_json())
    save_adapted(tmp_path / "adapted", *made)
    HubClassifier(tmp_path / "adapted", licence="cc-by-4.0").save_pretrained(tmp_path / "saved")
    found = HubClassifier.from_pretrained(str(tmp_path / "saved"))
    expected = load_deployed(tmp_path / "adapted")
    np.testing.assert_array_equal(found.model.probabilities(pixels), expected.probabilities(pixels))
    assert private_words(tmp_path / "adapted", run.parent.name)
    assert private_words(tmp_path / "saved", run.parent.name) == []
    text = (tmp_path / "saved" / "README.md").read_text()
    assert f"{100 * made[1].cross_validated_accuracy:.1f} %" in text  # type: ignore[operator]
    assert "Classes: a, b." in text
    assert "license: cc-by-4.0" in text
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(fs.FirststepError, match="takes a folder of `firststep adapt` or a"):
        HubClassifier(tmp_path / "model.onnx")


class OwnLearner(fs.MetaLearner, PyTorchModelHubMixin):
    """A meta-learner of one's own network needs nothing of ours: its arguments are the configuration."""

    def __init__(self, hidden: int = 8, rate: float = 0.1) -> None:
        network = nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, 3))
        super().__init__(network, fs.meta_sgd(rate=rate), steps=2)


def test_a_learner_of_ones_own_network_has_the_mixin(tmp_path: Path) -> None:
    meta = OwnLearner(hidden=6)
    meta.save_pretrained(tmp_path / "own")
    found = OwnLearner.from_pretrained(str(tmp_path / "own"))
    assert found.network[0].out_features == 6
    x, y = torch.randn(6, 4), torch.arange(3).repeat(2)
    assert torch.equal(found.adapt(x, y)(x), meta.adapt(x, y)(x))
