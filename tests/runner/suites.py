"""What there is to run: the test programs of a build, as CTest lists them, and the pytest suites of the tree.

A suite is a folder under tests/ that holds test_*.py and lies in no other such folder; so a new one is found without
being named here.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.builds import Variant
from runner.execution import PROCESSORS, Task

PYTHON = "/usr/bin/python3"
FUZZER = "fuzzer"
"""CTest's label of programs that are not GoogleTest's."""
SUITE_TIMEOUT_S = 2400
PROGRAM_TIMEOUT_S = 900
MEASURING = (
    "tests/harness/test_collect_smaps.py",
    "tests/workloads/test_workload_modes.py",
)
"""Test files that measure time or memory: they run one test at a time with nothing beside them."""


@dataclass(frozen=True)
class Suite:
    """A pytest suite, or the part of it that runs alone."""

    name: str
    arguments: tuple[str, ...]
    workers: int


def python_suites(root: Path) -> list[Suite]:
    """Return the pytest suites under tests/."""
    folders = sorted({path.parent for path in (root / "tests").rglob("test_*.py")})
    tops = [folder for folder in folders if not any(parent in folders for parent in folder.parents)]
    suites = []
    for top in tops:
        folder = top.relative_to(root).as_posix()
        name = "pytest/" + folder.removeprefix("tests/")
        alone = [file for file in MEASURING if file.startswith(folder + "/") and (root / file).exists()]
        suites.append(Suite(name, (folder, *(f"--ignore={file}" for file in alone)), PROCESSORS))
        if alone:
            suites.append(Suite(name + " alone", tuple(alone), 0))
    return suites


def python_tasks(root: Path, junit: Path) -> list[Task]:
    """Return a task for each pytest suite; each takes all processors."""
    tasks = []
    for suite in python_suites(root):
        report = junit / (suite.name.replace("/", "-").replace(" ", "-") + ".xml")
        command = (
            PYTHON, "-m", "pytest", "-q", "-ra", "--tb=short", "-p", "no:cacheprovider", "-n", str(suite.workers),
            f"--junitxml={report}", *suite.arguments,
        )  # fmt: skip
        tasks.append(Task(suite.name, command, root, SUITE_TIMEOUT_S, PROCESSORS, report))
    return tasks


def program_tasks(variant: Variant, root: Path, junit: Path) -> tuple[list[Task], str]:
    """Return a task for each test program of a variant, and what is missing, or nothing."""
    folder = variant.folder(root)
    listing = subprocess.run(
        ["ctest", "--test-dir", str(folder), "--show-only=json-v1"], capture_output=True, text=True
    )
    if listing.returncode != 0:
        return [], f"ctest cannot list them: {listing.stderr.strip()}"
    tasks: dict[str, Task] = {}
    missing = []
    for test in json.loads(listing.stdout)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        if variant.label and variant.label not in properties.get("LABELS", []):
            continue
        if not test.get("command") or not Path(test["command"][0]).exists():
            missing.append(test["name"])
            continue
        task = _program_task(variant, test, properties, folder, junit)
        tasks.setdefault(task.name, task)
    complaint = f"these were not built: {' '.join(missing)}" if missing else ""
    return list(tasks.values()), complaint


def _program_task(
    variant: Variant, test: dict[str, Any], properties: dict[str, Any], folder: Path, junit: Path
) -> Task:
    """Return the task of one entry of CTest's list; entries that name one test of a program run the whole program."""
    command = [word for word in test["command"] if not word.startswith(("--gtest_filter", "--gtest_also_run"))]
    name = f"{variant.name}/{Path(command[0]).name}"
    report: Path | None = junit / (name.replace("/", "-") + ".xml")
    if FUZZER in properties.get("LABELS", []):
        # A fuzzer knows nothing of JUnit: it is one test, which its exit code decides.
        report = None
    else:
        command += [f"--gtest_output=xml:{report}", "--gtest_brief=1"]
    return Task(
        name,
        (*variant.prefix, *command),
        folder,
        float(properties.get("TIMEOUT", PROGRAM_TIMEOUT_S)),
        min(int(properties.get("PROCESSORS", 1)), PROCESSORS),
        report,
        environment=dict(variant.environment),
    )
