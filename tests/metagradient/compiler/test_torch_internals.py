"""Private parts of PyTorch are used in one module only, which names the versions that were tested."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import firststep
from firststep.metagradient.compiler import torch_internals

PACKAGE = Path(firststep.__file__).parent
ROOT = Path(__file__).parents[3]
SOURCES = sorted(PACKAGE.rglob("*.py"))


def is_private(path: str) -> bool:
    parts = path.split(".")
    return parts[0] == "torch" and (any(part.startswith("_") for part in parts) or "experimental" in parts)


def private_imports(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            if re.fullmatch(r"[\w.]+", dotted) and not dotted.startswith("torch.ops."):
                # Both are documented, whatever their names look like.
                names = [re.sub(r"^torch\.__(version|config)__", r"torch.\1", dotted)]
        yield from (name for name in names if is_private(name))


def test_the_search_finds_them() -> None:
    source = "import torch._dynamo\nfrom torch.utils._pytree import a\ntorch._ops.b\ntorch.ops.aten._c\n"
    assert set(private_imports(source)) == {
        "torch._dynamo",
        "torch.utils._pytree.a",
        "torch._ops",
        "torch._ops.b",
    }


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_other_module_uses_them(path: Path) -> None:
    found = set(private_imports(path.read_text()))
    assert bool(found) == (path == Path(torch_internals.__file__)), found


def test_the_tested_versions_are_those_that_we_declare_and_install() -> None:
    lowest, highest = torch_internals.TESTED_TORCH
    (declared,) = re.findall(r'"torch>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    (pinned,) = re.findall(r"^torch==([\d.]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert lowest.startswith(declared)
    assert highest == pinned


def test_importing_firststep_does_not_import_the_compiler() -> None:
    program = (
        "import sys, torch; before = set(sys.modules); import firststep; firststep.MetaLearner; "
        "print(set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "torch._inductor" not in done.stdout
    assert "firststep.network" in done.stdout
