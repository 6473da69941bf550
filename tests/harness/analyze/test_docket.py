"""The docket: which runs it asks for, in which order, and what it makes of runs that went wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from harness.analyze.docket import Docket, fill, unchanged_code
from harness.analyze.figures import NoFigure, count_of, histories_in, memory_by_category, series_of
from harness.analyze.thresholds import load_thresholds
from harness.analyze.verdict import Outcome, Verdict
from harness.model.plan import Job
from harness.model.workload import Workload
from results.records import Measurement, Sample
from tests.harness.analyze.records import AFTER, BEFORE, CHURN, VARIANT, count, measured, series

THRESHOLDS = load_thresholds(Path(__file__).resolve().parents[3] / "results" / "baselines" / "thresholds.toml")
LEVEL = 64.0 * (1 << 20)
Measure = Callable[[Job], Measurement]


def docket_of(workload: Workload = CHURN, complete: bool = False) -> Docket:
    docket = Docket(BEFORE, AFTER, "quick")
    fill(
        docket,
        [(workload, VARIANT)],
        THRESHOLDS,
        counter="callgrind",
        command=lambda name: f"repeat {name}",
        complete=complete,
    )
    return docket


def run(docket: Docket, measure: Measure) -> tuple[list[Job], dict[str, Verdict]]:
    jobs: list[Job] = []
    while wanted := docket.wanted():
        jobs += wanted
        docket.take(wanted, [measure(job) for job in wanted])
    return jobs, {verdict.metric: verdict for verdict in docket.verdicts()}


def steady(job: Job) -> Measurement:
    wobble = float(job.repeat * 4096 if job.arm is BEFORE else 0)
    return measured(job, count(1e6) if job.provider == "callgrind" else series([LEVEL + wobble] * 15))


def test_the_same_figures_take_few_runs_and_are_fine() -> None:
    jobs, verdicts = run(docket_of(), steady)
    assert [job.provider for job in jobs].count("callgrind") == 2
    assert len(jobs) < 12
    assert (verdicts["instructions"].outcome, verdicts["rss_bytes"].outcome) == (Outcome.UNCHANGED, Outcome.PLATEAU)
    assert verdicts["instructions"].command == "repeat churn:default"


def test_what_may_follow_bounds_what_is_measured() -> None:
    docket, asked = docket_of(), 0
    bounds = []
    while wanted := docket.wanted():
        bounds.append(asked + len(wanted) + len(docket.ahead(wanted)))
        asked += len(wanted)
        docket.take(wanted, [steady(job) for job in wanted])
    assert all(bound >= asked for bound in bounds) and bounds[0] > asked


def test_arms_run_in_turned_order_and_no_two_jobs_share_a_place() -> None:
    jobs, _ = run(docket_of(complete=True), steady)
    assert len({job.position for job in jobs}) == len(jobs)
    memory = [job for job in jobs if job.provider == "smaps"]
    assert [job.arm.role for job in memory[:4]] == ["pin", "tree", "tree", "pin"]
    assert len(memory) == 10


def test_counts_come_first() -> None:
    assert [job.provider for job in docket_of().wanted()][:2] == ["callgrind", "callgrind"]


def test_a_regression_is_found_in_both_metrics() -> None:
    def worse(job: Job) -> Measurement:
        after = job.arm is AFTER
        if job.provider == "callgrind":
            return measured(job, count(1e6 + 5000 * after))
        return measured(job, series([LEVEL * (1 + 0.003 * after * index) for index in range(15)]))

    _, verdicts = run(docket_of(), worse)
    assert (verdicts["instructions"].outcome, verdicts["rss_bytes"].outcome) == (Outcome.REGRESSED, Outcome.GROWING)


def test_a_failed_run_ends_its_case_with_the_reason() -> None:
    def broken(job: Job) -> Measurement:
        if job.provider == "callgrind" and job.arm is AFTER:
            return measured(job, (), status="failed", reason="it crashed.")
        return steady(job)

    jobs, verdicts = run(docket_of(), broken)
    assert [job.provider for job in jobs].count("callgrind") == 2
    assert verdicts["instructions"].outcome is Outcome.NOT_MEASURED
    assert verdicts["instructions"].reason == "tree: it crashed."
    assert verdicts["rss_bytes"].outcome is Outcome.PLATEAU


def test_another_checksum_is_a_wrong_result() -> None:
    def wrong(job: Job) -> Measurement:
        return replace(steady(job), checksum="f" * 16) if job.arm is AFTER else steady(job)

    _, verdicts = run(docket_of(), wrong)
    assert {verdict.outcome for verdict in verdicts.values()} == {Outcome.NOT_MEASURED}
    assert "wrong result" in verdicts["instructions"].reason


def test_a_missing_figure_is_not_measured() -> None:
    _, verdicts = run(docket_of(), lambda job: measured(job, ()))
    assert "has 0 figures of instructions" in verdicts["instructions"].reason
    assert "no rss_bytes at checkpoints labelled round" in verdicts["rss_bytes"].reason


def test_several_threads_are_judged_as_noisy() -> None:
    threaded = replace(CHURN, threads=4, metrics=("instructions",))
    figures = {BEFORE.role: [100.0, 100.1, 99.9, 100.05, 99.95], AFTER.role: [103.0, 103.1, 102.9, 103.05, 102.95]}
    jobs, verdicts = run(docket_of(threaded), lambda job: measured(job, count(1e6 * figures[job.arm.role][job.repeat])))
    assert len(jobs) == 10
    assert verdicts["instructions"].outcome is Outcome.REGRESSED
    assert verdicts["instructions"].p_value == pytest.approx(2 / 252)


def test_one_binary_in_both_arms_is_unchanged() -> None:
    docket = Docket(BEFORE, replace(BEFORE, role="tree"), "quick")
    fill(docket, [(CHURN, VARIANT)], THRESHOLDS, counter="callgrind", command=str)
    verdicts = unchanged_code(docket)
    assert verdicts is not None
    assert {verdict.outcome for verdict in verdicts} == {Outcome.UNCHANGED}
    assert unchanged_code(docket_of()) is None


def job_of(provider: str = "callgrind") -> Job:
    return Job(BEFORE, CHURN, VARIANT, provider, "quick", 0, 0)


def test_timed_runs_of_one_job_count_as_their_median() -> None:
    samples = tuple(
        Sample("wall_s", "s", value, checkpoint=index, label="run") for index, value in enumerate((3.0, 1.0, 2.0))
    )
    assert count_of(measured(job_of("hyperfine"), samples), "wall_s") == 2.0


def test_a_series_is_in_order_of_its_checkpoints() -> None:
    shuffled = tuple(reversed(series([1.0, 2.0, 3.0])))
    assert series_of(measured(job_of("smaps"), shuffled), "rss_bytes", "round") == [1.0, 2.0, 3.0]
    with pytest.raises(NoFigure, match="labelled peak"):
        series_of(measured(job_of("smaps"), shuffled), "rss_bytes", "peak")


def test_histories_are_by_build_in_order_and_end_where_the_judgement_began() -> None:
    began = pd.Timestamp("2026-01-02", tz="UTC")
    rows = [("a", "1", 1.0, -2), ("b", "2", 5.0, -2), ("a", "3", 2.0, -1), ("a", "3", 4.0, -1), ("a", "4", 9.0, 0)]
    frame = pd.DataFrame(
        {"build_key": build, "measurement_id": run, "value": value, "detail": None,
         "run_started_at": began + pd.Timedelta(hours=hours)}
        for build, run, value, hours in rows
    )  # fmt: skip
    assert histories_in(frame, began.to_pydatetime()) == [[1.0, 3.0], [5.0]]
    assert histories_in(frame.iloc[:0], began.to_pydatetime()) == []


def test_memory_categories_hold_every_checkpoint() -> None:
    assert memory_by_category([measured(job_of("smaps"), series([5.0, 6.0]))]) == {"rss_bytes": [[5.0, 6.0, 1.0]]}
