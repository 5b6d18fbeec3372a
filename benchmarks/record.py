"""Keep what was measured beside the page that shows it, so that an interrupted run can go on."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path
from typing import Any

import targets
from meta_gradient import SETTINGS, Measured, Setting, constrained


class Record:
    """Sections by setting, and the page made of them."""

    def __init__(self, page: Path, introduction: str, *, go_on: bool) -> None:
        self._page = page
        self._file = page.with_suffix(".json")
        self._introduction = introduction
        self._sections: dict[str, dict[str, Any]] = {}
        self.rest: dict[str, str] = {}
        """text after the settings, by part"""
        self.over_the_floor: dict[str, dict[str, float]] = {}
        """results of :mod:`over_the_floor`, by case"""
        if go_on and self._file.is_file():
            found = json.loads(self._file.read_text())
            self._sections, self.rest = found["sections"], found["rest"]
            self.over_the_floor = found.get("over the floor", {})

    def __contains__(self, setting: Setting) -> bool:
        return str(setting) in self._sections

    def add(self, setting: Setting, section: str, medians: Measured) -> None:
        print(section, flush=True)
        self._sections[str(setting)] = {
            "section": section,
            "medians": dataclasses.asdict(medians),
            "code": code_version(),
        }
        self.write()

    def write(self) -> None:
        known = [self._sections[str(setting)] for setting in SETTINGS if setting in self]
        missing = [_name(one) for one in SETTINGS if one not in self]
        measured = [Measured(**{**one["medians"], "code": one["code"]}) for one in known]
        judged = [*targets.targets(measured), *targets.floors(self.over_the_floor)]
        text = self._introduction + targets.table(judged) + "\n## One meta-gradient\n"
        text += "".join(f"{one['section']}\nCode of commit {one['code']}.\n" for one in known)
        if missing:
            text += f"\nNot measured here: {'; '.join(missing)}.\n"
        self._page.write_text(text + "".join(self.rest.values()))
        content = {
            "sections": self._sections,
            "over the floor": self.over_the_floor,
            "rest": self.rest,
        }
        self._file.write_text(json.dumps(content, indent=1) + "\n")


def code_version() -> str:
    """Return the commit of the code: settings may be measured in several runs."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent.parent), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "src")  # results are being written as we go
        return git("rev-parse", "--short", "HEAD") + (", changed" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _name(setting: Setting) -> str:
    subsets = sorted({constrained(contender) for contender in setting.contenders} - {"", "cls"})
    return f"{setting.network}, K = {setting.steps}" + "".join(f" with {subset}" for subset in subsets)
