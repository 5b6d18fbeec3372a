"""A warm process for somebody else: a line of JSON in for each command, a line of JSON out with what it did.

Tests start one, because forking from a process with threads, as pytest's are, is not safe. It ends when its
standard input does.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from campaigns import warm_fork, warm_up
from campaigns.processes import adopt_orphans
from campaigns.warm_fork import Surroundings


def serve() -> None:
    adopt_orphans()
    warm_up.import_everything()
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    for line in requests:
        request = json.loads(line)
        surroundings = Surroundings(
            cwd=Path(request["cwd"]), environment=request["environment"], stdin=request["input"].encode()
        )
        outcome = warm_fork.run(
            warm_fork.command(request["arguments"]), surroundings, request["timeout"], grace=10.0
        )
        answers.write(json.dumps(asdict(outcome)).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve()
