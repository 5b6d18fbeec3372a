"""A server that is told to end does, with clients still connected, and leaves nothing behind."""

from __future__ import annotations

import threading
from pathlib import Path

from firststep.page import Models
from served_page import served


def of_the_page() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("firststep-")}


def test_its_threads_end_with_it_and_an_open_connection_does_not_keep_it(
    models: Models, tmp_path: Path
) -> None:
    before = of_the_page()
    with served(models, tmp_path / "runs") as page:
        idle = page.connect()
        idle.connect()
        assert page.ask("/api/runs").status == 200
        its_own = of_the_page() - before
        names = {thread.name.rpartition("_")[0] or thread.name for thread in its_own}
        assert names == {"firststep-server", "firststep-page"}
    for thread in its_own:
        thread.join(60)
    assert not [thread for thread in its_own if thread.is_alive()]
    idle.close()
