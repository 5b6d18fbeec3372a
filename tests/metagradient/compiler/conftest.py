"""What the tests of the compiler share."""

from __future__ import annotations

import pytest

from firststep.metagradient.compiler import kept_code


@pytest.fixture(autouse=True)
def nothing_kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace and compile, whatever other tests have compiled: these tests count or replace compilations."""
    if request.path.stem != "test_kept_code":
        monkeypatch.setattr(kept_code, "_path", lambda *_: None)
