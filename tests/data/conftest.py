"""Every test has its own user cache. The glyphs are drawn once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from firststep.data import Dataset, open_dataset


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIRSTSTEP_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture(scope="session")
def glyph_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The workers of pytest-xdist share the parent folder. The lock lets one draw and the others wait.
    return tmp_path_factory.getbasetemp().parent / "glyphs"


@pytest.fixture(scope="session")
def glyphs(glyph_cache: Path) -> Dataset:
    return open_dataset("glyphs", cache=glyph_cache)


@pytest.fixture(scope="session")
def real_omniglot() -> Path:
    path = Path(__file__).parents[3] / "shared" / "data" / "omniglot"
    if not path.is_dir():
        pytest.skip("the real Omniglot is not beside the repository")
    return path
