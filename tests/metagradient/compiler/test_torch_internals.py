"""Two modules use private parts of PyTorch, and one of them names the tested versions."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import firststep
from firststep.metagradient.compiler import inductor_patches, torch_internals

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
                # Both are documented in spite of their names.
                names = [re.sub(r"^torch\.__(version|config)__", r"torch.\1", dotted)]
        yield from (name for name in names if is_private(name))


def test_private_imports_are_found() -> None:
    source = "import torch._dynamo\nfrom torch.utils._pytree import a\ntorch._ops.b\ntorch.ops.aten._c\n"
    assert set(private_imports(source)) == {
        "torch._dynamo",
        "torch.utils._pytree.a",
        "torch._ops",
        "torch._ops.b",
    }


def test_only_two_modules_use_private_parts() -> None:
    using = {path: found for path in SOURCES if (found := set(private_imports(path.read_text())))}
    assert set(using) == {Path(module.__file__) for module in (inductor_patches, torch_internals)}, using


def test_the_tested_versions_are_the_declared_and_the_pinned_one() -> None:
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
