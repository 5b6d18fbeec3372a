"""Run under torchrun: checks of the team, then command lines of firststep one after the other.

They could be launches of their own, but each would take seconds to start.
"""

from __future__ import annotations

import json
import sys

from exchange import check_team

from firststep.cli import main

check_team()
for arguments in json.loads(sys.argv[1]):
    assert main(arguments) == 0, arguments
