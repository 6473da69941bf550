"""The session: one row a job, whatever happens; nothing stored is lost when it stops."""

from __future__ import annotations

import dataclasses
import errno
import functools
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest
from git_checkout import ROOT

from harness.build.arms import reference_arm, tree_arm
from harness.build.launcher import launcher_path
from harness.collect.providers import provider_named
from harness.collect.scratch import Scratch, sweep
from harness.collect.session import Session
from harness.model.allocator import Incomparable, load_allocators
from harness.model.errors import CannotMeasure, Interrupted
from harness.model.plan import build_plan
from harness.model.workload import load_workloads, select_set
from results.store import open_store


@pytest.fixture
def store(tmp_path):
    """Return a fresh store."""
    with open_store(str(tmp_path / "store.sqlite")) as opened:
        yield opened


@pytest.fixture
def arms(checkout):
    """Return the arms: own tree, glibc, one that is not installed."""
    configs = load_allocators(checkout.allocators_file)
    return [tree_arm(checkout, configs["own"]), *(reference_arm(checkout, configs[n]) for n in ("glibc", "absent"))]


def plan_for(checkout, arms, providers=("smaps",), repeats=1):
    """Return a plan over the fake workload."""
    return build_plan(arms, select_set(load_workloads(checkout), "fixed"), providers, repeats=repeats)


def with_arguments(jobs, *words):
    """Return the jobs with other arguments for the workload."""
    return [dataclasses.replace(j, variant=dataclasses.replace(j.variant, quick=words, counted=words)) for j in jobs]


class StopAfter:
    """Progress that presses Ctrl-C after some jobs."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs

    def begin(self, jobs):
        pass

    def started(self, job):
        if self.left == 0:
            raise KeyboardInterrupt

    def ended(self, job, measurement):
        self.left -= 1

    def close(self):
        pass


def test_every_job_has_a_row_in_the_plan_s_order(checkout, store, arms):
    plan = plan_for(checkout, arms, ("callgrind", "smaps"), repeats=2)
    with Session(checkout, store, "run", "test") as session:
        made = session.execute(plan)
    stored = store.measurements(run_id=session.run.id)
    assert [m.position for m in made] == list(range(len(plan)))
    assert {m.id for m in stored} == {m.id for m in made}
    assert store.runs()[0].status == "finished"
    assert {m.status for m in made if m.build.allocator != "absent"} == {"ok"}


def test_what_is_not_installed_is_a_row_that_says_why(checkout, store, arms):
    with Session(checkout, store, "run", "test") as session:
        session.execute(plan_for(checkout, arms))
    (row,) = store.measurements(allocator="absent")
    assert (row.status, row.reason) == ("skipped", "absent is not installed: run `apt-get install libabsent9`.")


def test_a_failed_job_is_a_row_and_the_others_go_on(checkout, store, arms):
    plan = plan_for(checkout, arms[:2])
    plan[:1] = with_arguments(plan[:1], "--misbehave", "crash")
    with Session(checkout, store, "run", "test") as session:
        first, second = session.execute(plan)
    assert first.status == "failed" and "SIGSEGV" in first.reason and not first.samples
    assert second.status == "ok"


def test_what_a_row_holds(checkout, store, arms):
    with Session(checkout, store, "run", "test") as session:
        session.execute(plan_for(checkout, arms[:1], ("callgrind",)))
    (row,) = store.measurements(run_id=session.run.id)
    assert row.active_allocator == str(arms[0].preload)
    assert row.checksum == "00c0ffee00c0ffee" and row.operations == 1000 and row.modes["heap"] == "emulated"
    assert row.build.sha256 == arms[0].build.sha256 and row.duration_s > 0
    assert store.attachment(row.id, "callgrind")
    run = store.runs(limit=1)[0]
    assert run.environment.cpu_model and run.environment.tools["valgrind"]


def test_ctrl_c_keeps_what_was_measured_and_marks_the_run(checkout, store, arms):
    plan = plan_for(checkout, arms[:2], repeats=3)
    with pytest.raises(Interrupted, match="the 2 of 6 measurements made so far are stored"):
        with Session(checkout, store, "run", "test", StopAfter(2)) as session:
            session.execute(plan)
    assert len(store.measurements()) == 2
    assert store.runs()[0].status == "interrupted"


def test_a_stopped_run_goes_on_where_it_was(checkout, store, arms):
    plan = plan_for(checkout, arms[:2], repeats=2)
    with pytest.raises(Interrupted):
        with Session(checkout, store, "run", "test", StopAfter(3)) as session:
            session.execute(plan)
    before = {m.id for m in store.measurements()}
    with Session(checkout, store, "run", "test", resume=store.runs()[0]) as session:
        made = session.execute(plan)
    assert len(made) == 4 and before < {m.id for m in made}
    assert len(store.measurements()) == 4
    assert [run.status for run in store.runs()] == ["finished"]


def test_ctrl_c_during_parallel_counting_ends_every_job(checkout, store, arms):
    plan = with_arguments(plan_for(checkout, arms[:2], ("callgrind",)), "--misbehave", "hang")

    class StopAtSecond(StopAfter):
        def started(self, job):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        with Session(checkout, store, "run", "test", StopAtSecond(2)) as session:
            session.execute(plan)
    assert store.runs()[0].status == "interrupted" and not store.measurements()


def test_a_full_disk_is_one_sentence_and_loses_nothing(checkout, store, arms, monkeypatch):
    plan = plan_for(checkout, arms[:2], repeats=2)
    provider = provider_named("smaps")
    measure, calls = provider.measure, []

    def full(job, context):
        calls.append(job)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return measure(job, context)

    monkeypatch.setattr(provider, "measure", full)
    with pytest.raises(CannotMeasure, match="disk of .* is full: free some space .* 2 measurements made so far"):
        with Session(checkout, store, "run", "test") as session:
            session.execute(plan)
    assert len(store.measurements()) == 2 and store.runs()[0].status == "failed"


def test_an_excluded_provider_gives_the_configured_reason(checkout, store, arms):
    config = dataclasses.replace(arms[0].config, excluded={"smaps": "it is too large"})
    arm = dataclasses.replace(arms[0], config=config)
    with Session(checkout, store, "run", "test") as session:
        (row,) = session.execute(plan_for(checkout, [arm]))
    assert (row.status, row.reason) == ("skipped", "smaps cannot measure own: it is too large.")


def test_an_incomparable_workload_gives_the_configured_reason(checkout, store, arms):
    entry = Incomparable("fake:default", "it returns blocks of another size", versions="1.*")
    config = dataclasses.replace(arms[0].config, incomparable=(entry,))

    def measured(version):
        build = dataclasses.replace(arms[0].build, version=version)
        with Session(checkout, store, "run", "test") as session:
            (row,) = session.execute(plan_for(checkout, [dataclasses.replace(arms[0], config=config, build=build)]))
        return row.status, row.reason

    reason = "fake is not comparable under own: it returns blocks of another size."
    assert measured("1.2") == ("skipped", reason)
    assert measured("2.0") == ("ok", ""), "the fault is mended there"


def test_a_missing_program_is_a_row_that_says_so(checkout, store, arms):
    plan = plan_for(checkout, arms[:1])
    job = dataclasses.replace(plan[0], workload=dataclasses.replace(plan[0].workload, requires=("no-such-program",)))
    with Session(checkout, store, "run", "test") as session:
        (row,) = session.execute([job])
    assert row.status == "skipped" and "needs no-such-program" in row.reason


def test_a_provider_that_is_not_there_is_a_row_that_says_so(checkout, store, arms, monkeypatch):
    found = __import__("shutil").which
    monkeypatch.setattr("shutil.which", lambda name: None if name == "valgrind" else found(name))
    with Session(checkout, store, "run", "test") as session:
        (row,) = session.execute(plan_for(checkout, arms[:1], ("callgrind",)))
    assert row.status == "skipped" and "apt-get install valgrind" in row.reason


def test_a_run_of_another_machine_is_not_resumed(checkout, store, arms):
    with Session(checkout, store, "run", "test") as session:
        session.execute(plan_for(checkout, arms[:1]))
    foreign = dataclasses.replace(session.run, environment=dataclasses.replace(session.run.environment, libc="other"))
    with pytest.raises(CannotMeasure, match="made in another environment"):
        with Session(checkout, store, "run", "test", resume=foreign):
            pass


def test_a_workload_that_is_rebuilt_during_the_run_is_noticed(checkout, store, arms):
    """All arms must run the same file; a `make` beside a measurement replaces it."""
    binary = checkout.workload_binaries / "fake"

    class RebuildAfterFirst(StopAfter):
        def started(self, job):
            if self.left == 0:
                binary.with_suffix(".new").write_bytes(binary.read_bytes())
                binary.with_suffix(".new").chmod(0o755)
                binary.with_suffix(".new").rename(binary)

    with Session(checkout, store, "run", "test", RebuildAfterFirst(1)) as session:
        first, second = session.execute(plan_for(checkout, arms[:2]))
    assert first.status == "ok"
    assert second.status == "failed" and "was rebuilt during the run" in second.reason


def test_scratch_is_cleaned(checkout, store, arms):
    with Session(checkout, store, "run", "test") as session:
        session.execute(plan_for(checkout, arms[:1], ("callgrind", "smaps", "hyperfine")))
    assert not list(checkout.scratch.glob("*"))


APP = """
name = "litter"
summary = "Leaves temporary files, as a driver that is killed does."
stresses = "Nothing."
kind = "app"
command = ["sh", "litter.sh"]
threads = 1
tags = ["fixed"]
metrics = ["rss_bytes"]
timeout_s = 1

[[variant]]
name = "default"
quick = []
"""


@pytest.fixture
def litter(checkout, tmp_path):
    """An app that leaves a folder in TMPDIR and hangs; return how a user runs it."""
    folder = checkout.workloads / "litter"
    folder.mkdir()
    (folder / "workload.toml").write_text(APP)
    (folder / "litter.sh").write_text('mkdir "$TMPDIR/tidemark-litter-1"\nexec tail -f /dev/null\n')
    (tmp_path / "tmp").mkdir()
    environment = {
        **os.environ, "TIDEMARK_ROOT": str(checkout.root), "TIDEMARK_DB": str(tmp_path / "s.sqlite"),
        "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    command = [sys.executable, "-m", "harness", "run", "-w", "litter", "-a", "glibc", "-p", "smaps"]
    return functools.partial(subprocess.Popen, command, env=environment, stderr=subprocess.PIPE, text=True)


def test_an_app_that_is_killed_leaves_no_temporary_files(litter, tmp_path):
    measuring = litter(stdout=subprocess.PIPE)
    output, _ = measuring.communicate()
    assert measuring.returncode == 2 and "did not end in its time" in output
    assert list((tmp_path / "tmp").iterdir()) == []


def test_what_a_killed_session_left_goes_with_the_next(litter, checkout, tmp_path):
    change = checkout.workloads / "litter" / "workload.toml"
    change.write_text(APP.replace("timeout_s = 1", "timeout_s = 600"))
    measuring = litter(stdout=subprocess.DEVNULL)
    while not list((tmp_path / "tmp").glob("*/*/tidemark-litter-1")):
        assert measuring.poll() is None, measuring.stderr.read()
        os.sched_yield()
    sweep(checkout.scratch)
    assert list((tmp_path / "tmp").iterdir()) and list(checkout.scratch.iterdir()), "its owner lives"
    with pytest.raises(CannotMeasure, match="still goes on in another process"):
        Scratch(checkout.scratch, next(checkout.scratch.iterdir()).name).open()
    measuring.kill()
    measuring.communicate()
    change.write_text(APP)
    again = litter(stdout=subprocess.DEVNULL)
    again.communicate()
    assert list((tmp_path / "tmp").iterdir()) == [] and list(checkout.scratch.iterdir()) == []


def test_nothing_outlives_a_harness_that_is_killed(checkout, store, arms, tmp_path):
    """SIGKILL leaves no time to tidy up: the launcher sees its parent's death and ends all it started."""
    program = (
        "import sys; from pathlib import Path\n"
        "from harness.collect.execution import *; from harness.collect.launch import *\n"
        "launch = Launch(Path(sys.argv[1]), (sys.argv[2], '--misbehave', 'hang'), Path('/'), {}, 60.0)\n"
        "execute(launch, Path(sys.argv[3]), StopRequest(), on_start=lambda start: print(start.pid, flush=True))\n"
    )
    command = [sys.executable, "-c", program, str(launcher_path(checkout)), str(checkout.workload_binaries / "fake"),
               str(tmp_path / "scratch")]  # fmt: skip
    harness = subprocess.Popen(command, cwd=Path(__file__).resolve().parents[2], stdout=subprocess.PIPE, text=True)
    hanging = os.pidfd_open(int(harness.stdout.readline()))
    harness.kill()
    harness.wait()
    assert select.select([hanging], [], [], 60)[0], "the workload still runs"
    os.close(hanging)
    harness.stdout.close()
