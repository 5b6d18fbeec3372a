"""Workflows and templates: valid by their schemas, and made of commands that run here.

They cannot run here. So each step is a make target, and this checks that there is one.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = [path for path in sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"]
SCHEMAS = [
    ("vendor.github-workflows", WORKFLOWS),
    ("custom.github-workflows-require-timeout", WORKFLOWS),
    ("vendor.github-issue-forms", FORMS),
    ("vendor.github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
    ("vendor.citation-file-format", [ROOT / "CITATION.cff"]),
]
BESIDE_MAKE = {"sudo apt-get -qq update && sudo apt-get -qq install -y chromium-browser"}
"""Packages that a runner installs itself, as .ci/run does."""


def check(schema: str, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        schema,
        "--force-filetype",
        "yaml",
    ]
    return subprocess.run([*command, *map(str, files)], capture_output=True, text=True)


@pytest.mark.parametrize(("schema", "files"), SCHEMAS, ids=[schema for schema, _ in SCHEMAS])
def test_files_are_valid(schema: str, files: list[Path]) -> None:
    assert files
    done = check(schema, *files)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_invalid_workflow_is_noticed(tmp_path: Path) -> None:
    text = WORKFLOWS[0].read_text().replace("runs-on:", "runs_on:")
    (tmp_path / "broken.yml").write_text(text)
    assert check("vendor.github-workflows", tmp_path / "broken.yml").returncode == 1


def steps() -> Iterator[tuple[str, dict[str, str]]]:
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            for step in job["steps"]:
                yield path.name, step


def test_every_command_of_a_workflow_is_a_make_target() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [(name, step["run"]) for name, step in steps() if "run" in step]
    assert len(commands) >= 6
    for name, command in commands:
        if command not in BESIDE_MAKE:
            words = shlex.split(command)
            assert words[0] == "make", (name, command)
            assert words[1] in targets, (name, command)


def test_every_system_version_and_torch_is_covered() -> None:
    jobs = yaml.safe_load((GITHUB / "workflows" / "tests.yml").read_text())["jobs"]
    covered = {
        (system.partition("-")[0], python, "lowest" if name == "lowest-torch" else "newest")
        for name, job in jobs.items()
        for system in job["strategy"]["matrix"].get("system", [job["runs-on"]])
        for python in job["strategy"]["matrix"]["python"]
    }
    assert covered == {
        (system, python, torch)
        for system in ("ubuntu", "macos", "windows")
        for python in ("3.11", "3.12", "3.13")
        for torch in ("lowest", "newest")
    }


def test_only_the_last_job_of_a_release_may_publish() -> None:
    release = yaml.safe_load((GITHUB / "workflows" / "release.yml").read_text())
    assert release["permissions"] == {"contents": "read"}
    assert release["jobs"]["publish"]["needs"] == "check"
    assert release["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert "permissions" not in release["jobs"]["check"]


def test_hooks_before_a_commit_are_make_targets() -> None:
    config = ROOT / ".pre-commit-config.yaml"
    done = subprocess.run([sys.executable, "-m", "pre_commit", "validate-config", str(config)])
    assert done.returncode == 0
    (local,) = yaml.safe_load(config.read_text())["repos"]
    assert [hook["entry"] for hook in local["hooks"]] == ["make lint", "make types"]
