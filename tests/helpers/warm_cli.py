"""The command line without seconds of imports: commands in children of a process that has made them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]


class WarmCommands:
    """Runs commands as ``subprocess.run([sys.executable, "-m", "firststep", ...])`` would.

    A child has a session, environment, working folder and streams of its own, and ends as an interpreter
    does. What a process is at its very start (imports, its first signals) is for a real one.
    """

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None

    def run(
        self,
        arguments: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        input: str = "",
        timeout: float = 240,
    ) -> subprocess.CompletedProcess[str]:
        words = [str(argument) for argument in arguments]
        request = {
            "arguments": words,
            "cwd": str(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "input": input,
            "timeout": timeout,
        }
        server = self._started()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        if not answer:
            raise RuntimeError(f"the warm process has ended with {server.wait()}")
        outcome = json.loads(answer)
        command = ["firststep", *words]
        if outcome["timed_out"]:
            raise subprocess.TimeoutExpired(command, timeout, outcome["stdout"], outcome["stderr"])
        assert not outcome["left_behind"], f"{command} has left processes behind: {outcome['left_behind']}"
        return subprocess.CompletedProcess(command, outcome["status"], outcome["stdout"], outcome["stderr"])

    def close(self) -> None:
        if self._server is not None:
            assert self._server.stdin is not None
            assert self._server.stdout is not None
            self._server.stdin.close()
            self._server.stdout.close()
            self._server.wait(240)

    def _started(self) -> subprocess.Popen[bytes]:
        """Start at the first command: many test processes never run one."""
        if self._server is None:
            path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
            self._server = subprocess.Popen(
                [sys.executable, "-m", "campaigns.warm"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            )
        return self._server
