"""The models in the package adapt to images, and the demo runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from firststep.cli import main
from firststep.cli.compare import stored_or_new
from firststep.cli.demo_run import SHIPPED
from firststep.data import Episodes, open_dataset
from firststep.evaluation import EvaluationSettings
from firststep.evaluation._internal import DEFAULT_EPISODES
from firststep.training import data_for, load_trained, open_run
from runs import width


def write_episode(folder: Path, number: int) -> tuple[Path, Path]:
    """Write a test episode as a user's own images: support/<class>/*.png and query/<class>-*.png."""
    split = open_dataset("glyphs").split("test")
    episodes = Episodes(split, ways=5, shots=5, queries=4, seed=77)
    plan = episodes.rows(number)
    support, query = folder / "support", folder / "query"
    query.mkdir(parents=True)
    for label, (support_rows, query_rows) in enumerate(zip(plan.support, plan.query, strict=True)):
        (support / f"letter{label}").mkdir(parents=True)
        for row in support_rows:
            Image.fromarray(split.images[row][:, :, 0]).save(support / f"letter{label}" / f"{row}.png")
        for row in query_rows:
            Image.fromarray(split.images[row][:, :, 0]).save(query / f"letter{label}-{row}.png")
    return support, query


@pytest.mark.parametrize(("steps", "least"), [("auto", 17), ("2", 15), ("1", 8)])
def test_the_built_in_model_reads_letters_it_never_saw(
    steps: str, least: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    support, query = write_episode(tmp_path, 3)
    command = ["adapt", "builtin:glyphs", "--support", str(support), "--query", str(query)]
    assert main([*command, "--steps", steps, "--format", "json", "--out", str(tmp_path / "out")]) == 0
    rows = json.loads(capsys.readouterr().out)
    right = [Path(row["image"]).name.startswith(f"{row['class']}-") for row in rows]
    assert len(right) == 20
    assert sum(right) >= least  # chance is 4


def test_the_pair_shows_the_effect_on_the_same_episodes() -> None:
    """A few episodes suffice: after one step the conditioned model is tens of points ahead."""
    first_step, condition = [], []
    for name in ("builtin:glyphs-maml", "builtin:glyphs-conditioned", "builtin:glyphs"):
        trained = load_trained(name)
        result = trained.evaluate(
            data_for(trained), EvaluationSettings(episodes=12, steps=(0, 1))
        ).measurement
        first_step.append(result.mean()[1])
        condition.append(result.mean("condition_number")[0])
    assert first_step[1] > first_step[0] + 0.15
    assert condition[1] < condition[0] / 2
    assert first_step[2] > first_step[1] + 0.05  # and with a shared head further
    assert condition[2] < condition[0] / 2


@pytest.mark.slow
def test_the_demo_runs_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    flags = ["--updates", "2", "--episodes", "2", "--seed", "3"]
    assert main(["demo", *flags, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Meta-training three models on glyphs for 2 updates each")
    assert "Just trained, 2 updates" in shown
    assert "Shipped with firststep, 600 updates" in shown
    assert "22.2 ± 0.4" in shown  # the stored test of MAML, as in the README
    assert "condition number goes from" in shown
    stored = shown.partition("Shipped with firststep")[2].splitlines()  # two episodes have wide intervals
    table = [line for line in stored if line.startswith(("┏", "┃", "│", "glyphs test"))]
    assert len(table) == 9
    assert max(map(len, table)) <= 80
    assert open_run(out / "shared").config.seed == 3
    assert (out / "comparison.html").is_file()
    assert width(out / "comparison.png") > 1000
    assert main(["demo", "--out", str(out)]) == 2  # never over an old one


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_model_comes_with_its_test(name: str) -> None:
    """Stored for this checkpoint and this data; its first episodes come out the same here."""
    run = open_run(name)
    stored = stored_or_new(name, run, EvaluationSettings(steps=(0, 1, 5)))
    assert stored.settings.episodes == DEFAULT_EPISODES
    trained = load_trained(name)
    again = trained.evaluate(
        data_for(trained), EvaluationSettings(episodes=2, steps=(0, 1))
    ).measurement.accuracy
    assert stored.measurement.accuracy[:2, :2] == pytest.approx(again, abs=0.05)
