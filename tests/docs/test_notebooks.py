"""The notebooks: valid, without outputs, and run from top to bottom as Jupyter would."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from docsite.notebooks import EXTRAS, NOTEBOOKS, notebook

FILES = sorted(NOTEBOOKS.glob("*.ipynb"))
MOST_SECONDS = 180
"""CPU seconds of a notebook. On an idle CPU it takes less time than that."""
PAGE = """# 9. A page

Take [this](../faq.md) and [that](8-other.md#part).

    pip install '.[cli]'

<!-- snippet: with `--tasks 1` for `--tasks` -->

Text with `firststep diagnose RUN --tasks`.

<!-- snippet: with `1` for `100` -->
```python
print(100)
```

<!-- output -->
```text
100
```

![a curve](../images/tutorials/9-curve.png)

    firststep demo                # a comment
    firststep data list

<!-- snippet: with `small` for `large` -->

    firststep train large

    a/  b/
"""


def sources(cells: list[nbformat.NotebookNode]) -> list[tuple[str, str]]:
    return [(cell.cell_type, cell.source) for cell in cells]


def test_how_a_page_becomes_a_notebook() -> None:
    made = nbformat.reads(notebook(PAGE, "cli,onnx"), as_version=4)
    nbformat.validate(made)
    title, install, *cells = sources(made.cells)
    assert title == ("markdown", "# A page")
    assert '%pip install --quiet "{wheels[0]}[cli,onnx]"' in install[1]
    assert cells == [
        ("markdown", "Take [this](../docs/faq.md) and [that](../docs/tutorials/8-other.md#part)."),
        ("markdown", "Text with `firststep diagnose RUN --tasks`."),
        ("code", "print(100)"),
        ("code", 'from IPython.display import Image\n\nImage("curve.png")'),
        ("code", "!firststep demo                # a comment\n!firststep data list"),
        ("markdown", "firststep train large\n\n    a/  b/"),
    ]


def test_notebooks_are_valid_and_have_no_outputs() -> None:
    assert [path.stem for path in FILES] == sorted(EXTRAS)
    for path in FILES:
        read = nbformat.read(path, as_version=4)
        nbformat.validate(read)
        code = [cell for cell in read.cells if cell.cell_type == "code"]
        assert len(code) >= 5
        assert not any(cell.outputs or cell.execution_count for cell in code), path.name


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in ``folder`` with this interpreter; a command that fails is an error too."""
    read = nbformat.read(path, as_version=4)
    for cell in read.cells:
        if cell.source.startswith("!"):
            lines = [f"{line}\nassert _exit_code == 0, {line!r}" for line in cell.source.splitlines()]
            cell.source = "\n".join(lines)
    read.cells.append(nbformat.v4.new_code_cell("import os; print(sum(os.times()[:4]))"))
    variables = dict(os.environ)
    variables["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), variables["PATH"]])
    variables["OMP_NUM_THREADS"] = "1"
    client = NotebookClient(
        read, timeout=550, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    client.execute(env=variables)
    return read


def printed(read: nbformat.NotebookNode) -> str:
    outputs = [output for cell in read.cells for output in cell.get("outputs", ())]
    return "".join(output.text for output in outputs if output.output_type == "stream")


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_notebook_runs_in_less_than_three_minutes(path: Path, tmp_path: Path) -> None:
    read = executed(path, tmp_path)
    seconds = float(printed(read).split()[-1])
    assert 0 < seconds < MOST_SECONDS, seconds
    said = printed(read)
    if path.stem == "3-the-first-step":
        shown = [output for cell in read.cells for output in cell.get("outputs", ()) if "data" in output]
        assert sum("image/png" in output.data for output in shown) == 2
        assert "condition number" in said
    elif path.stem == "6-your-photographs":
        assert "model.pt2" in said
        assert (tmp_path / "model.onnx").is_file()
    else:
        losses = [float(value) for value in re.findall(r"pinball loss ([\d.]+)", said)]
        assert len(losses) == 6
        assert losses[5] < losses[2] / 2  # five steps, meta-learned and from random weights
