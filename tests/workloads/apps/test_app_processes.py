"""Checkpoints hold the measured program still, and no process outlives a run, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from app_runs import (
    APP_NAMES,
    LIVING,
    HeldDriver,
    Invocation,
    preload_path,
    run_driver,
    stand_in,
    tagged_processes,
    wait_until_gone,
)


@pytest.mark.parametrize("app", LIVING)
def test_start_names_the_process_that_runs_under_the_allocator(app: str) -> None:
    preload = Path(preload_path("jemalloc")).resolve()
    with HeldDriver(Invocation(app, str(preload))) as driver:
        start = driver.next_event()
        assert driver.next_event()["event"] == "checkpoint"
        process = Path(f"/proc/{start['pid']}")
        assert str(preload) in (process / "maps").read_text()
        assert str(preload) not in Path(f"/proc/{driver.process.pid}/maps").read_text()
        assert "Rss:" in (process / "smaps_rollup").read_text()


@pytest.mark.parametrize("app", APP_NAMES)
def test_a_run_waits_at_each_checkpoint_and_leaves_nothing(app: str) -> None:
    invocation = Invocation(app)
    with HeldDriver(invocation) as driver:
        assert driver.next_event()["event"] == "start"
        while (event := driver.next_event())["event"] == "checkpoint":
            assert driver.process.poll() is None
            driver.go()
        assert event["event"] == "end"
        assert driver.process.wait(timeout=30) == 0
    assert wait_until_gone(tagged_processes(invocation.tag)) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("app", LIVING)
def test_no_program_outlives_a_driver_that_is_killed(app: str, number: signal.Signals) -> None:
    invocation = Invocation(app)
    with HeldDriver(invocation) as driver:
        program = int(str(driver.next_event()["pid"]))
        driver.next_event()
        running = tagged_processes(invocation.tag)
        assert program in running and driver.process.pid in running
        driver.process.send_signal(number)
        driver.process.communicate(timeout=30)
        assert wait_until_gone(running) == []
    assert tagged_processes(invocation.tag) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize(("app", "variable", "probe"), [("git", "GIT", "--version"), ("gpp", "GPP", "--version")])
def test_no_step_outlives_a_driver_that_is_killed(
    app: str, variable: str, probe: str, number: signal.Signals, tmp_path: Path
) -> None:
    """The program hangs in its first real step; the test hears of it through a fifo."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    body = f'case "$1" in {probe}|-print*) exec /usr/bin/{app.replace("gpp", "g++")} "$@";; esac\n'
    program = stand_in(tmp_path / "hanging", body + f"echo $$ > {fifo}\nexec sleep 600")
    invocation = Invocation(app, programs={variable: program})
    driver = subprocess.Popen(
        invocation.command(), env=invocation.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        hanging = int(fifo.read_text())
        running = tagged_processes(invocation.tag)
        assert hanging in running
        driver.send_signal(number)
        driver.wait(timeout=30)
        assert wait_until_gone(running) == []
    finally:
        driver.kill()
        driver.wait()
    assert tagged_processes(invocation.tag) == []


@pytest.mark.parametrize(("app", "variable"), [("lua", "LUA5_4"), ("redis", "REDIS_SERVER")])
def test_no_process_outlives_a_failed_run(app: str, variable: str, tmp_path: Path) -> None:
    """The stand-in leaves a child of its own in its group before it fails."""
    body = 'case "$1" in -v|--version) exit 0;; esac\nsleep 600 & kill -SEGV $$'
    program = stand_in(tmp_path / "failing", body)
    invocation = Invocation(app, programs={variable: program})
    assert run_driver(invocation).status == 3
    assert wait_until_gone(tagged_processes(invocation.tag)) == []


def test_scratch_directory_is_removed(tmp_path: Path) -> None:
    outcome = run_driver(Invocation("git", extra={"TMPDIR": str(tmp_path)}))
    assert outcome.status == 0, outcome.complaint
    assert list(tmp_path.iterdir()) == []
