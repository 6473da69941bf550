"""The checkpoint server and the verdict on an execution, against a workload that misbehaves in every known way."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from harness.collect.events import Checkpoint, Start
from harness.collect.execution import Execution, execute
from harness.collect.launch import prepare
from harness.collect.memory import descendants
from harness.collect.validity import Void, check
from harness.model.errors import Interrupted


def run(bench, *arguments, checkpoints=True, timeout_s=20.0, on_checkpoint=None):
    """Run the fake workload and return (job, execution)."""
    job = bench.job(*arguments, timeout_s=timeout_s)
    context = bench.context()
    launch = prepare(job, bench.layout, context.launcher, counting=False)
    execution = execute(launch, context.scratch, context.stop, checkpoints=checkpoints, on_checkpoint=on_checkpoint)
    return job, execution


def test_a_good_run_has_its_events_usage_and_checksum(bench):
    job, execution = run(bench, "--rounds", "4")
    outcome = check(execution, job)
    assert [type(event) for event in execution.events[:2]] == [Start, Checkpoint]
    assert len([event for event in execution.events if isinstance(event, Checkpoint)]) == 4
    assert outcome.end.checksum == "00c0ffee00c0ffee"
    assert outcome.end.operations == 1000
    assert execution.usage is not None and execution.usage.exit == 0
    assert execution.usage.minor_faults > 0


def test_without_descriptors_the_workload_runs_free(bench):
    job, execution = run(bench, "--rounds", "2", checkpoints=False)
    assert check(execution, job).end.operations == 1000


def test_the_workload_waits_at_each_checkpoint(bench):
    """While the callback runs the process is alive and its next checkpoint has not been written."""
    seen = []

    def look(start: Start, event: Checkpoint) -> None:
        state = Path(f"/proc/{start.pid}/stat").read_text().rpartition(")")[2].split()[0]
        seen.append((event.checkpoint, state in "SR"))

    run(bench, "--rounds", "5", on_checkpoint=look)
    assert seen == [(number, True) for number in range(5)]


@pytest.mark.parametrize(
    ("how", "clause"),
    [
        ("crash", "was ended by SIGSEGV"),
        ("wrong", "found a wrong byte or result"),
        ("usage", "could not run"),
        ("exit7", "ended with exit code 7"),
        ("silent", "without its end event"),
        ("no-end", "without its end event"),
        ("no-start", "without its start event"),
        ("two-ends", "two end events"),
        ("bad-checksum", "not 16 hexadecimal digits"),
        ("garbage", "a line that is no event"),
        ("lie", "the allocator was not loaded"),
    ],
)
def test_a_run_that_went_wrong_is_void_and_says_how_to_repeat_it(bench, how, clause):
    job, execution = run(bench, "--misbehave", how)
    with pytest.raises(Void) as void:
        check(execution, job)
    assert clause in str(void.value)
    assert "./tidemark run --workload fake:default" in str(void.value) or how == "lie"


def test_a_wrong_byte_is_quoted(bench):
    job, execution = run(bench, "--misbehave", "wrong")
    with pytest.raises(Void, match="byte 7 of block 3"):
        check(execution, job)


def test_another_workload_s_binary_is_void(bench):
    job, execution = run(bench, "--name", "other")
    with pytest.raises(Void, match="calls itself other"):
        check(execution, job)


def test_a_hang_is_ended_at_the_deadline(bench):
    job, execution = run(bench, "--misbehave", "hang", timeout_s=0.5)
    assert execution.timed_out
    with pytest.raises(Void, match="did not end in its time"):
        check(execution, job)
    assert descendants(os.getpid()) == [os.getpid()]


def test_a_process_left_behind_is_ended_with_the_run(bench):
    job, execution = run(bench, "--misbehave", "leave-child")
    check(execution, job)
    assert execution.usage is not None and execution.usage.leftovers == 1
    assert descendants(os.getpid()) == [os.getpid()]


def test_a_stop_ends_the_execution_and_its_processes(bench):
    job = bench.job("--misbehave", "hang")
    context = bench.context()
    launch = prepare(job, bench.layout, context.launcher, counting=False)
    started = threading.Event()
    stopper = threading.Thread(target=lambda: (started.wait(10), context.stop.set()))
    stopper.start()
    with pytest.raises(Interrupted):
        execute(launch, context.scratch, context.stop, on_start=lambda start: started.set())
    stopper.join()
    assert descendants(os.getpid()) == [os.getpid()]


def test_an_execution_without_report_is_void(bench):
    with pytest.raises(Void, match="left no report"):
        check(Execution("fake"), bench.job())


def test_a_program_that_cannot_start_is_void(bench):
    import dataclasses

    job = bench.job()
    context = bench.context()
    launch = prepare(job, bench.layout, context.launcher, counting=False)
    execution = execute(dataclasses.replace(launch, command=("/nonexistent/program",)), context.scratch, context.stop)
    with pytest.raises(Void, match="could not be started"):
        check(execution, job)
