"""Generated parts of the pages are up to date: tables, reference, the figure of speed."""

from __future__ import annotations

import re

import pytest

from docsite import packages, pipeline
from docsite.blocks import filled, generated_names, pages
from docsite.definitions import definition
from docsite.paths import DOCS, ROOT
from docsite.tables import GENERATORS
from docsite.write import written
from firststep.metagradient.compiler.passes import CLEAN_UP, PREPARE, REWRITE
from helpers.pages import snippets

MATHEMATICS = (DOCS / "how-it-works.md").read_text()


def test_nothing_written_is_out_of_date() -> None:
    stale = [str(path.relative_to(ROOT)) for path, text in written().items() if path.read_text() != text]
    assert not stale, "make docs-write"


def test_every_generator_is_used() -> None:
    used = {name for page in pages() for name in generated_names(page.read_text())}
    assert used == set(GENERATORS)


def test_a_block_is_replaced_and_nothing_else() -> None:
    page = "before\n<!-- generated: sum 1 2 -->\nold\n<!-- end -->\nafter\n"
    made = filled(page, {"sum": lambda *words: str(sum(map(int, words)))})
    assert made == "before\n<!-- generated: sum 1 2 -->\n\n3\n\n<!-- end -->\nafter\n"
    assert filled(made, {"sum": lambda *words: "3"}) == made
    with pytest.raises(LookupError, match="nothing generates 'sum'"):
        filled(page, {})


def test_the_packages_are_those_of_the_contract_and_import_downwards() -> None:
    order = {package: place for place, layer in enumerate(packages.layers()) for package in layer}
    imports = packages.imports()
    assert set(imports) == set(order)
    assert "rules" in imports["methods"]
    assert all(order[target] > order[package] for package, targets in imports.items() for target in targets)


def test_the_compilers_table_has_every_pass_in_order() -> None:
    text = pipeline.table()
    places = [text.index(f"`{one.__name__}`") for one in (*CLEAN_UP, *REWRITE, *PREPARE)]
    assert places == sorted(places)


def test_every_equation_is_beside_a_function_that_exists_and_checked_by_code() -> None:
    """The equations' sections: each names a function of the reference and has code that asserts."""
    sections = re.split(r"^## ", MATHEMATICS, flags=re.MULTILINE)[1:]
    with_equations = [section for section in sections if "$$" in section]
    assert len(with_equations) >= 8
    code = {snippet.line: snippet.code for snippet in snippets(DOCS / "how-it-works.md")}
    for section in with_equations:
        title = section.partition("\n")[0]
        named = re.findall(r"\]\(reference/\w+\.md#([\w.]+)\)", section)
        assert named, title
        for path in named:
            module, _, name = path.rpartition(".")
            assert definition(module, name).docstring, path
    assert sum("assert " in block for block in code.values()) >= len(with_equations) - 1
