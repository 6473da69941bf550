"""What is counted, for reports of each kind and for programs that leave none."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.execution import Finished, Task
from runner.tally import Tally, read_result

GTEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" failures="1" disabled="1" errors="0" name="AllTests"><testsuite name="Arena">
<testcase name="Takes" status="run" result="completed" classname="Arena" />
<testcase name="Gives" status="run" result="completed" classname="Arena"><failure message="a" type=""/></testcase>
<testcase name="Locks" status="run" result="skipped" classname="Arena"><skipped message="file.cc:3&#x0A;no  right to lock"/></testcase>
<testcase name="DISABLED_Later" status="notrun" result="suppressed" classname="Arena" />
</testsuite></testsuites>
"""
PYTEST = """<testsuites><testsuite name="pytest" errors="1" failures="0" skipped="1" tests="3">
<testcase classname="tests.a" name="test_x" /><testcase classname="tests.a" name="test_y"><skipped message="no PMU"/></testcase>
<testcase classname="" name="tests.b"><error message="collection failure">trace</error></testcase></testsuite></testsuites>
"""
EMPTY = '<testsuites><testsuite name="pytest" tests="0"></testsuite></testsuites>'
FINE = '<testsuites><testsuite name="a"><testcase classname="a" name="b"/></testsuite></testsuites>'


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A task whose report the test writes."""
    return Task("debug/arena_test", ("true",), tmp_path, 10, junit=tmp_path / "report.xml")


def write(task: Task, text: str) -> None:
    assert task.junit is not None
    task.junit.write_text(text, encoding="utf-8")


def test_a_gtest_report_is_counted_with_its_skips_and_reasons(task: Task) -> None:
    write(task, GTEST)
    result = read_result(Finished(task, 1, 0.1))
    assert (result.passed, result.failures, result.complaint) == (1, ["Arena.Gives"], "")
    assert result.skips == [("Arena.Locks", "file.cc:3 no right to lock"), ("Arena.DISABLED_Later", "disabled in its source")]


def test_a_pytest_report_counts_errors_as_failures(task: Task) -> None:
    write(task, PYTEST)
    result = read_result(Finished(task, 1, 0.1))
    assert (result.passed, result.failures, result.skips) == (1, ["tests.b"], [("tests.a.test_y", "no PMU")])


@pytest.mark.parametrize("code, ran", [(-11, True), (-6, True), (1, False), (127, False)])
def test_a_program_without_a_report_is_not_forgotten(task: Task, code: int, ran: bool) -> None:
    result = read_result(Finished(task, code, 0.1))
    assert result.complaint and result.ran is ran
    assert task.junit is not None and "<error" in task.junit.read_text(encoding="utf-8")
    assert read_result(Finished(task, code, 0.1)).failures, "the JUnit file in its place is a failure for its readers"


def test_a_sanitizer_s_exit_code_fails_a_program_whose_tests_passed(task: Task) -> None:
    write(task, FINE)
    result = read_result(Finished(task, 66, 0.1))
    tally = Tally()
    tally.add(result)
    assert (tally.passed, tally.exit_code()) == (1, 1)
    assert "exit code 66" in tally.failed[0]


@pytest.mark.parametrize("text", [EMPTY, "<testsuites><testsu"])
def test_a_report_without_a_test_is_a_failure(task: Task, text: str) -> None:
    write(task, text)
    tally = Tally()
    tally.add(read_result(Finished(task, 5, 0.1)))
    assert tally.exit_code() != 0
    assert tally.last_line() == "0 passed, 1 failed"


def test_a_program_that_knows_no_junit_is_one_test(tmp_path: Path) -> None:
    task = Task("fuzzer/arena_fuzzer", ("true",), tmp_path, 10)
    assert read_result(Finished(task, 0, 0.1)).passed == 1
    assert read_result(Finished(task, 77, 0.1)).failures == ["exit code 77"]


def test_the_last_line_and_the_exit_code() -> None:
    tally = Tally(passed=7)
    assert (tally.last_line(), tally.exit_code()) == ("7 passed, 0 failed", 0)
    tally.could_not_run("build thread", "exit code 2")
    assert (tally.last_line(), tally.exit_code()) == ("7 passed, 1 failed", 2)
    tally.failed.append("a test")
    assert (tally.last_line(), tally.exit_code()) == ("7 passed, 2 failed", 1)
