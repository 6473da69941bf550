"""Controls tell a change of the machine or the workload from a change of the allocator."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from harness.analyze.control import judge_control, voided
from harness.analyze.verdict import Outcome, Threshold, Verdict
from harness.model.plan import Job
from results.records import Measurement
from tests.harness.analyze.records import AFTER, BEFORE, CHURN, VARIANT, count, measured

LIMIT = Threshold(0.05, "%", "test")
JOB = Job(BEFORE, CHURN, VARIANT, "callgrind", "quick", 0, 0)


def run(value: float, run_id: str = "now", job: Job = JOB) -> Measurement:
    return measured(job, count(value), run_id=run_id)


def test_an_unmoved_control_has_nothing_to_say() -> None:
    finding = judge_control("churn", "instructions", run(1e6), run(1e6), [run(1e6, "earlier")], LIMIT)
    assert (finding.moved, finding.sentence, finding.since_stored_percent) == (False, "", 0.0)


def test_a_control_that_moves_within_the_run_voids_the_verdict() -> None:
    finding = judge_control("churn", "instructions", run(1e6), run(1.01e6), [], LIMIT)
    assert finding.moved and "the machine moved" in finding.sentence
    verdict = Verdict("churn", "default", "instructions", "callgrind", Outcome.REGRESSED, figure=3.0)
    assert voided(verdict, finding).outcome is Outcome.CANNOT_TELL


def test_a_control_that_moved_since_it_was_stored_accuses_the_workload() -> None:
    finding = judge_control("churn", "instructions", run(1.2e6), run(1.2e6), [run(1e6, "earlier")], LIMIT)
    assert not finding.moved and "the workload changed" in finding.sentence and "+20.000 %" in finding.sentence
    verdict = Verdict("churn", "default", "instructions", "callgrind", Outcome.REGRESSED, figure=3.0)
    assert voided(verdict, finding) is verdict


def test_only_the_newest_run_of_the_same_build_and_profile_counts() -> None:
    other_build = run(5e6, "earlier", replace(JOB, arm=AFTER))
    full = replace(run(7e6, "earlier"), profile="full")
    newest = run(1e6, "newest")
    oldest = replace(run(3e6, "oldest"), started_at=newest.started_at - timedelta(days=2))
    same_run = run(9e6)
    finding = judge_control(
        "churn", "instructions", run(1e6), run(1e6), [other_build, full, oldest, newest, same_run], LIMIT
    )
    assert finding.since_stored_percent == 0.0


def test_a_control_that_failed_is_said() -> None:
    failed = measured(JOB, (), status="failed", reason="valgrind is missing.")
    finding = judge_control("churn", "instructions", failed, failed, [], LIMIT)
    assert "could not be measured (valgrind is missing.)" in finding.sentence and not finding.moved
