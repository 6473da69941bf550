"""Counts what test programs and suites reported in their JUnit files, and what kept them from reporting."""

from __future__ import annotations

import signal
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import quoteattr

from runner.execution import Finished


@dataclass
class Result:
    """Of one task: tests that passed, names of those that failed, (name, reason) of those that were skipped."""

    task: str
    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skips: list[tuple[str, str]] = field(default_factory=list)
    complaint: str = ""
    """Why the task could not run, or ended badly though its tests did not fail."""
    ran: bool = True
    """False: it could not be run at all."""

    def summary(self) -> str:
        """Return the counts, and what went wrong, in a few words."""
        words = [f"{self.passed} passed"]
        if self.failures:
            words.append(f"{len(self.failures)} failed")
        if self.skips:
            words.append(f"{len(self.skips)} skipped")
        if self.complaint:
            words.append(self.complaint)
        return ", ".join(words)


@dataclass
class Tally:
    """The sum of everything."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Count a task's result."""
        self.passed += result.passed
        self.failed += [f"{result.task}: {name}" for name in result.failures]
        self.skipped += [f"{result.task}: {name}: {reason}" for name, reason in result.skips]
        if result.complaint:
            (self.failed if result.ran else self.not_run).append(f"{result.task}: {result.complaint}")

    def could_not_run(self, name: str, reason: str) -> None:
        """Count something that could not be built or run."""
        self.not_run.append(f"{name}: {reason}")

    def print_details(self, seconds: float) -> None:
        """Print the skipped and the failed, each with its reason."""
        for title, entries in (("skipped", self.skipped), ("FAILED", self.failed), ("COULD NOT RUN", self.not_run)):
            for entry in entries:
                print(f"{title} {entry}")
        print(f"{len(self.skipped)} skipped; {seconds:.0f} s")

    def last_line(self) -> str:
        """Return what scripts read."""
        return f"{self.passed} passed, {len(self.failed) + len(self.not_run)} failed"

    def exit_code(self) -> int:
        """Return 1 when a test failed, 2 when something could not be run, 0 otherwise."""
        return 1 if self.failed else 2 if self.not_run else 0


def read_result(done: Finished) -> Result:
    """Return what a task reported. A task that left no report, or no test, could not be run."""
    result = Result(done.task.name)
    report = done.task.junit
    if report is None:
        # A program that reports by its exit code alone is one test.
        result.passed = int(done.code == 0)
        result.failures = [] if done.code == 0 else [done.complaint or ending(done.code)]
        return result
    if not report.exists():
        result.complaint = done.complaint or f"it ended with {ending(done.code)} and left no report"
        # A program that was started and died has failed; one that never began could not be run.
        result.ran = done.code < 0 or bool(done.complaint)
        _write_report(done, result.complaint)
        return result
    try:
        cases = ElementTree.parse(report).getroot().iter("testcase")
        for case in cases:
            _count(case, result)
    except ElementTree.ParseError as error:
        result.complaint = f"its report is broken: {error}"
        return result
    if done.code != 0 and not result.failures:
        result.complaint = done.complaint or f"no test failed, but it ended with {ending(done.code)}"
    elif not result.passed and not result.failures and not result.skips:
        result.complaint, result.ran = "it has no test", False
    return result


def ending(code: int) -> str:
    """Return an exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _count(case: ElementTree.Element, result: Result) -> None:
    name = f"{case.get('classname', '')}.{case.get('name', '')}".strip(".")
    skipped = case.find("skipped")
    if case.find("failure") is not None or case.find("error") is not None:
        result.failures.append(name)
    elif skipped is not None:
        result.skips.append((name, " ".join((skipped.get("message") or skipped.text or "").split()) or "no reason given"))
    elif case.get("status") == "notrun":
        result.skips.append((name, "disabled in its source"))
    else:
        result.passed += 1


def _write_report(done: Finished, complaint: str) -> None:
    """Leave a JUnit file with one error in place of the one that the task did not write."""
    assert done.task.junit is not None
    name = quoteattr(done.task.name)
    done.task.junit.write_text(
        f'<testsuites><testsuite name={name} tests="1" errors="1"><testcase classname={name} name="run" time="'
        f'{done.seconds:.3f}"><error message={quoteattr(complaint)}/></testcase></testsuite></testsuites>\n',
        encoding="utf-8",
    )
