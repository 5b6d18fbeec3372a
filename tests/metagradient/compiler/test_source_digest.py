"""Code that was compiled before a change of our sources is not used after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.fx import Graph, GraphModule

from firststep.metagradient import compiler
from firststep.metagradient.compiler.source_digest import SOURCE_DIGEST, source_digest
from firststep.metagradient.compiler.torch_internals import compile_for
from firststep.metagradient.compiler.trace import compile_graph


def test_every_change_of_a_source_file_changes_the_digest(tmp_path: Path) -> None:
    digests = [SOURCE_DIGEST]
    (tmp_path / "pooling.py").write_text("a = 1\n")
    digests.append(source_digest(tmp_path))
    (tmp_path / "notes.txt").write_text("not a source")
    assert source_digest(tmp_path) == digests[-1]
    (tmp_path / "pooling.py").write_text("a = 2\n")
    digests.append(source_digest(tmp_path))
    (tmp_path / "pooling.py").rename(tmp_path / "rows.py")
    digests.append(source_digest(tmp_path))
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "more.py").write_text("")
    digests.append(source_digest(tmp_path))
    (tmp_path / "kernel.cpp").write_text("")
    digests.append(source_digest(tmp_path))
    assert len(set(digests)) == len(digests)


def test_the_digest_is_that_of_the_compiler_package() -> None:
    assert source_digest(Path(compiler.__file__).parent) == SOURCE_DIGEST


def test_without_sources_processes_share_nothing(tmp_path: Path) -> None:
    assert source_digest(tmp_path) != source_digest(tmp_path)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch.compiler.reset()
    yield tmp_path
    torch.compiler.reset()


def test_a_changed_operator_is_compiled_again(empty_cache: Path) -> None:
    """The graph contains only the operator's name, so it stays the same; the digest differs."""
    values = torch.arange(4.0)

    def compiled(operator: Callable[[Tensor], Tensor], version: str) -> Tensor:
        library = torch.library.Library("firststep_test", "DEF")
        library.define("changed(Tensor values) -> Tensor")
        library.impl("changed", operator, "CompositeImplicitAutograd")
        graph = Graph()
        result = graph.call_function(torch.ops.firststep_test.changed.default, (graph.placeholder("values"),))
        graph.output([result])
        (found,) = compile_for(GraphModule({}, graph), [values], {}, version)(values)
        library._destroy()
        return found

    assert torch.equal(compiled(lambda values: 2 * values, "before"), 2 * values)
    assert any(empty_cache.rglob("*.so"))
    assert torch.equal(compiled(lambda values: 3 * values, "after"), 3 * values)


def test_the_users_own_tag_stays_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def compile_now(graph: GraphModule, *_arguments: object, **_options: object) -> GraphModule:
        seen.append(torch.compiler.config.cache_key_tag)
        return graph

    import torch._inductor
    import torch.compiler.config

    monkeypatch.setattr(torch._inductor, "compile", compile_now)
    graph = Graph()
    graph.output([graph.placeholder("values")])
    with torch.compiler.config.patch(cache_key_tag="mine"):
        compile_graph(GraphModule({}, graph), [torch.zeros(2)])
        assert torch.compiler.config.cache_key_tag == "mine"
    assert seen == [f"mine firststep {SOURCE_DIGEST}"]
