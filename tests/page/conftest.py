"""Two tiny trained models and a page that serves them, once for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsing import Tab, chromium
from firststep.page import Models, load_models
from runs import tiny_run
from served_page import ServedPage, lesson_of, served


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def runs_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the runs ``plain`` (a per-class head) and ``shared`` (one row for all)."""
    folder = tmp_path_factory.mktemp("a place of its own") / "runs"
    tiny_run(folder / "plain", conditioning="none")
    tiny_run(folder / "shared", head="shared")
    return folder


@pytest.fixture(scope="session")
def models(runs_folder: Path) -> Models:
    return load_models([str(runs_folder / name) for name in ("plain", "shared", "missing")])


@pytest.fixture(scope="session")
def page(models: Models, runs_folder: Path) -> Iterator[ServedPage]:
    with served(models, runs_folder) as found:
        yield found


@pytest.fixture(scope="session")
def episode(page: ServedPage) -> Any:
    answer = page.ask("/api/episode", {"model": "plain", "ways": 3, "shots": 3, "queries": 2, "seed": 5})
    assert answer.status == 200, answer.body
    return answer.json()


@pytest.fixture(scope="session")
def lesson(episode: Any) -> dict[str, Any]:
    return lesson_of(episode, "plain")


# Per file: while it is open, Playwright keeps an event loop running in this thread, and tests of other files
# could not start their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def tab(browser: Any, page: ServedPage) -> Iterator[Tab]:
    """Open a page; at the end, check that it had no errors and sent nothing outside."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    opened = Tab(context, page.address.url)
    yield opened
    context.close()
    assert opened.outside == []
    assert opened.complaints == []
