"""The pages of the API reference, from the public names and the docstrings of the modules."""

from __future__ import annotations

import ast

from docsite.definitions import definition, exported, file_of
from docsite.paths import DOCS
from docsite.public_names import GROUPS
from docsite.references import as_code

FOLDER = DOCS / "reference"


def page_name(module: str) -> str:
    return f"{module.removeprefix('firststep.')}.md"


def page(module: str) -> str:
    """Return Markdown with a directive of mkdocstrings for each name."""
    about = (ast.get_docstring(ast.parse(file_of(module).read_text())) or "").replace("::\n", ":\n")
    paragraphs = as_code(about).replace("``", "`")
    parts = [f"# {module}\n", f"{paragraphs}\n"]
    above = sorted(set(exported(module)) & set(exported("firststep"))) if module != "firststep" else []
    if above:
        listed = ", ".join(f"[`{name}`][{definition(module, name).path}]" for name in above)
        parts.append(f"Also here, from [firststep](firststep.md): {listed}.\n")
    parts.append(f"[What the examples start from](README.md#{start_of(module)}).\n")
    for title, names in GROUPS[module].items():
        parts.append(f"## {title}\n")
        parts += [
            f"::: {definition(module, name).path}\n    options:\n      heading_level: 3\n" for name in names
        ]
    return "\n".join(parts)


NEEDS_A_RUN = ("evaluation", "training", "jobs", "paper", "deployment", "hub")


def start_of(module: str) -> str:
    """Return the heading of the reference's first page under which a module's examples start."""
    if module.endswith(NEEDS_A_RUN):
        return "with-a-trained-run"
    return "with-data" if module.endswith("data") else "the-library"
