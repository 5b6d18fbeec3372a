"""timm and transformers beside a torchvision for another build of torch: the message says what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

REASON = "operator torchvision::nms does not exist"


@pytest.mark.slow
@pytest.mark.parametrize(("package", "network"), [("timm", "timm:resnet10t"), ("transformers", "hf:vit")])
def test_a_torchvision_for_another_torch_is_named_with_the_remedy(
    package: str, network: str, tmp_path: Path
) -> None:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text(f"raise RuntimeError({REASON!r})\n")
    (tmp_path / "vit").mkdir()
    (tmp_path / "vit" / "config.json").write_text('{"model_type": "vit", "image_size": 16}')
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "firststep", "train", "--network", network],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    *_, said = done.stderr.splitlines()  # transformers may warn before
    assert done.returncode == 2
    assert said.startswith(f"firststep: cannot import {package}: torchvision ")
    assert f"was built for another torch than {torch.__version__} ({REASON}); install the build" in said
