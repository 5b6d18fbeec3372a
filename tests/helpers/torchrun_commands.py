"""Run under torchrun: checks of the team, then command lines of firststep one after the other.

They could be launches of their own, but each would take seconds to start.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from exchange import check_non_finite, check_team
from firststep.cli import main

check_team()
check_non_finite(Path(sys.argv[1]))
for arguments in json.loads(sys.argv[2]):
    assert main(arguments) == 0, arguments
if sys.platform == "linux":  # a thread of gloo that is left could abort the process at its exit
    threads = [task.joinpath("comm").read_text() for task in Path("/proc/self/task").iterdir()]
    assert not any("gloo" in name for name in threads), threads
