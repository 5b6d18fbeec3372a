"""The README's code runs as it stands, and names the two commands."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_library_example_runs() -> None:
    longest = max(re.findall(r"```python\n(.*?)```", README, re.DOTALL), key=len)
    exec(compile(longest, "README.md", "exec"), {})


def test_the_two_commands_are_named() -> None:
    assert "make demo" in README
    assert "make test" in README
