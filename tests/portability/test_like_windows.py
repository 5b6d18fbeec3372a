"""The commands where Windows and macOS differ from Linux, as far as Linux can simulate them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = (
    "--no-compile --filters 4 --updates 2 --meta-batch 1 --validate-every 1 --validation-episodes 2 --shots 1"
    " --threads 1"
)


def like_windows(folder: Path, *commands: str) -> subprocess.CompletedProcess[str]:
    helpers = [str(ROOT / "tests" / "helpers"), os.environ.get("PYTHONPATH", str(ROOT / "src"))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(helpers), "OMP_NUM_THREADS": "1"}
    lines = json.dumps([command.split() for command in commands])
    command = [sys.executable, "-m", "like_windows", lines]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=500)


@pytest.mark.slow
def test_train_resume_and_evaluate(tmp_path: Path) -> None:
    done = like_windows(
        tmp_path,
        f"train glyphs {TINY} --out runs/one --log csv",
        "train --resume runs/one",
        f"train glyphs-paper {TINY} --out runs/two",
        "evaluate runs/one --episodes 2",
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert list((tmp_path / "runs" / "one" / "evaluations").glob("*.json"))
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.slow
def test_a_sweep_in_spawned_workers(tmp_path: Path) -> None:
    done = like_windows(tmp_path, f"train glyphs {TINY} --sweep seed=0,1 --out runs")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert len(list(tmp_path.rglob("run.json"))) == 2


@pytest.mark.slow
def test_adapt_export_and_predict(tmp_path: Path) -> None:
    from PIL import Image

    for kind in ("dark", "light"):
        for folder, count in (("support", 2), ("query", 1)):
            (tmp_path / folder / kind).mkdir(parents=True)
            for number in range(count):
                shade = 40 * number + (180 if kind == "light" else 20)
                Image.new("L", (32, 32), shade).save(tmp_path / folder / kind / f"{number}.png")
    done = like_windows(
        tmp_path,
        "adapt builtin:glyphs --support support --query query --export model.safetensors model.onnx",
        "adapt builtin:glyphs --support support --query query --export model.safetensors model.onnx",
        "predict model.safetensors query --format csv",
        "predict model.onnx query",
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


REFUSED = {
    "a forbidden name": "open('what?.txt', 'w')",
    "a device": "open('aux.txt', 'w')",
    "names that differ in case": "open('Run', 'w').close(); open('run', 'w')",
    "a file in use": "file = open('log', 'w'); os.remove('log')",
    "a mapped file": "open('a', 'wb').write(b'xx'); m = np.memmap('a', 'u1', 'r'); os.remove('a')",
    "the process file system": "open('/proc/self/status')",
}


@pytest.mark.slow
def test_the_simulation_refuses_what_windows_does(tmp_path: Path) -> None:
    code = "import os, like_windows\nimport numpy as np\n" + "".join(
        f"try:\n    {attempt}\nexcept OSError:\n    pass\nelse:\n    print({name!r})\n"
        for name, attempt in REFUSED.items()
    )
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "helpers"), str(ROOT / "src")])
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-2000:]


def test_the_package_names_the_encoding_of_every_text_file() -> None:
    """Without it Windows takes its own. The rule is a preview of ruff, not for `make lint`."""
    rule = ["check", "--isolated", "--preview", "--select", "PLW1514", "--no-cache"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *rule, str(ROOT / "src")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    found = subprocess.run(
        [sys.executable, "-m", "ruff", *rule, "-"], input="open('a').read()", capture_output=True, text=True
    )
    assert found.returncode == 1  # it would notice
