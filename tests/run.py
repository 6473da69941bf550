#!/usr/bin/env python3
"""Runs every C++ and Python test of the repository: what `make test` calls.

Builds what the tests need (runner/builds.py), runs each test program and each pytest suite (runner/suites.py) on
two processors at most, and counts what they reported (runner/tally.py). JUnit files go to build/junit/, complete
output to build/test-logs/. Skipped tests are printed with their reason.

The last line is `N passed, N failed`. Exit codes: 0 all passed, 1 a test failed, 2 something could not be built or
run (it counts as failed, too).
"""

from __future__ import annotations

import argparse
import fnmatch
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from runner.builds import VARIANTS, Variant, build_tasks  # noqa: E402
from runner.execution import Finished, Task, run_all  # noqa: E402
from runner.suites import program_tasks, python_tasks  # noqa: E402
from runner.tally import Result, Tally, ending, read_result  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
JUNIT = ROOT / "build" / "junit"
LOGS = ROOT / "build" / "test-logs"
LOG_TAIL_LINES = 40
"""Of a failed task's output this much is printed; the file has the rest."""


def main(arguments: Sequence[str]) -> int:
    """Run the tests and return the exit code."""
    options = parse(arguments)
    for folder in (JUNIT, LOGS):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    started_s = time.monotonic()
    tally = Tally()
    wanted = matcher(options.only)
    variants = [variant for variant in VARIANTS if variant.in_quick or not options.quick]
    try:
        built = build([variant for variant in variants if may_hold(variant, options.only)], tally)
        tasks = []
        for variant in built:
            programs, complaint = program_tasks(variant, ROOT, JUNIT)
            tasks += programs
            if complaint:
                tally.could_not_run(f"{variant.name} test programs", complaint)
        tasks = select(tasks + python_tasks(ROOT, JUNIT), wanted)
        if not tasks and not tally.failed:
            tally.could_not_run(f"--only {' '.join(options.only)}", "no test program or suite has such a name")
        run(tasks, tally)
    except KeyboardInterrupt:
        tally.could_not_run("the run", "it was interrupted")
    if options.quick:
        print("left out by --quick: builds " + ", ".join(v.name for v in VARIANTS if not v.in_quick))
    tally.print_details(time.monotonic() - started_s)
    print(tally.last_line(), flush=True)
    return tally.exit_code()


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options; exits with 2 when they make no sense."""
    parser = argparse.ArgumentParser(prog="tests/run.py", description="Run the tests.")
    parser.add_argument("--quick", action="store_true", help="leave the sanitizer builds out, and say so")
    parser.add_argument(
        "--only", metavar="PATTERN", action="append", default=[],
        help="only what has this in its name (debug/arena_test, pytest/results), or matches it where it has * or ?; repeatable",
    )  # fmt: skip
    return parser.parse_args(arguments)


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return what says whether a task's name was asked for."""
    def wanted(name: str) -> bool:
        return not patterns or any(
            fnmatch.fnmatchcase(name, pattern if any(c in pattern for c in "*?[") else f"*{pattern}*")
            for pattern in patterns
        )  # fmt: skip
    return wanted


def select(tasks: Sequence[Task], wanted: Callable[[str], bool]) -> list[Task]:
    """Return the tasks that were asked for."""
    return [task for task in tasks if wanted(task.name)]


def may_hold(variant: Variant, patterns: Sequence[str]) -> bool:
    """Say whether a variant can hold a program that was asked for: a pattern with a slash begins with its build."""
    return not patterns or any("/" not in pattern or pattern.startswith(f"{variant.name}/") for pattern in patterns)


def build(variants: Sequence[Variant], tally: Tally) -> list[Variant]:
    """Build the variants; return those that could be."""
    built = []
    for variant in variants:
        for task in build_tasks(variant, ROOT, LOGS):
            done = run_all([task], report=None)[0]
            if done.code != 0:
                show_log(done)
                tally.could_not_run(task.name, done.complaint or ending(done.code))
                break
        else:
            print(f"built {variant.name}", flush=True)
            built.append(variant)
    return built


def run(tasks: Sequence[Task], tally: Tally) -> None:
    """Run the tasks, print a line for each, and add up."""
    done_count = 0

    def report(done: Finished) -> None:
        nonlocal done_count
        done_count += 1
        result = read_result(done)
        tally.add(result)
        print(f"[{done_count}/{len(tasks)}] {done.task.name}: {result.summary()} ({done.seconds:.1f} s)", flush=True)
        show_failures(done, result)

    run_all([task.logged_in(LOGS) for task in tasks], report)


def show_failures(done: Finished, result: Result) -> None:
    """Print what failed and the end of the output that says why."""
    for name in result.failures:
        print(f"  FAILED {name}")
    if result.failures or result.complaint:
        show_log(done)


def show_log(done: Finished) -> None:
    """Print the end of a task's output."""
    lines = done.task.log.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in lines[-LOG_TAIL_LINES:]:
        print(f"  | {line}")
    print(f"  all of it: {done.task.log.relative_to(ROOT)}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
