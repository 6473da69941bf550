"""Many writers lose nothing, and a killed one leaves whole measurements or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from results import Store, open_store
from store_factory import make_build, make_measurement, make_run

WRITERS = 4
ROUNDS = 12
SAMPLES = 50

# Dies between the first statement that writes samples and the commit, which is the worst moment there is.
KILLED_WRITER = """
import os, signal, sys
import sqlalchemy as sa
from results import open_store
from store_factory import make_measurement, make_run

store = open_store(sys.argv[1])
run = make_run()
store.begin_run(run)
store.record(make_measurement(run, id="0" * 32, samples=50))

@sa.event.listens_for(store._engine, "after_cursor_execute")
def die(connection, cursor, statement, parameters, context, executemany):
    if statement.startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

store.record(make_measurement(run, id="1" * 32, samples=50))
"""


def _write(arguments: tuple[str, int]) -> list[str]:
    """Record from a process of its own, with builds and environments that other writers record too."""
    url, writer = arguments
    ids = []
    with open_store(url) as store:
        run = make_run(command=f"writer {writer}")
        store.begin_run(run)
        for position in range(ROUNDS):
            build = make_build(revision=f"{position:040x}")
            measurement = make_measurement(run, position=position, build=build, samples=SAMPLES)
            store.record(measurement)
            ids.append(measurement.id)
        store.finish_run(run.id, "finished")
    return ids


def test_processes_that_write_at_once_lose_nothing(database_url: str) -> None:
    with ProcessPoolExecutor(WRITERS) as pool:
        written = [each for ids in pool.map(_write, [(database_url, n) for n in range(WRITERS)]) for each in ids]
    with open_store(database_url) as store:
        stored = store.measurements()
        assert Counter(measurement.id for measurement in stored) == Counter(written)
        assert {len(measurement.samples) for measurement in stored} == {SAMPLES}
        assert {run.status for run in store.runs()} == {"finished"}
        assert len({measurement.build for measurement in stored}) == ROUNDS


def test_threads_share_a_store(store: Store) -> None:
    run = make_run()
    store.begin_run(run)
    measurements = [make_measurement(run, position=position) for position in range(40)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(store.record, measurements))
        counts = list(pool.map(lambda _: len(store.measurements()), range(8)))
    assert counts == [40] * 8
    assert store.measurements(attachments=True) == sorted(measurements, key=lambda each: each.position)


def test_one_id_recorded_by_many_at_once_is_recorded_once(store: Store) -> None:
    run = make_run()
    store.begin_run(run)
    measurement = make_measurement(run)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(store.record, [measurement] * 16))
    assert store.measurements(attachments=True) == [measurement]


@pytest.mark.parametrize("moment", ["INSERT INTO measurement", "INSERT INTO sample", "INSERT INTO attachment"])
def test_a_killed_writer_leaves_whole_measurements(database_url: str, moment: str) -> None:
    here = Path(__file__).resolve()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here.parents[2]), str(here.parent)])}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_WRITER, database_url, moment], env=environment, capture_output=True, text=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with open_store(database_url) as store:
        (survivor,) = store.measurements()
        assert survivor.id == "0" * 32
        assert len(survivor.samples) == 50
        (run,) = store.runs()
        assert run.status == "running"
        again = make_measurement(run, id="1" * 32, samples=50)
        store.record(again)
        assert len(store.measurements()) == 2


def test_a_reader_sees_nothing_of_a_measurement_before_it_is_whole(store: Store, database_url: str) -> None:
    import sqlalchemy as sa

    run = make_run()
    store.begin_run(run)
    seen = []
    with open_store(database_url) as reader:

        @sa.event.listens_for(store._engine, "after_cursor_execute")
        def look(connection, cursor, statement, parameters, context, executemany) -> None:  # type: ignore[no-untyped-def]
            if statement.startswith("INSERT INTO sample"):
                seen.append(len(reader.measurements()))

        store.record(make_measurement(run))
        assert seen == [0]
        assert len(reader.measurements()) == 1


def test_a_forked_child_has_connections_of_its_own(store: Store) -> None:
    run = make_run()
    store.begin_run(run)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            store.record(make_measurement(run, position=1))
            status = 0
        finally:
            os._exit(status)
    store.record(make_measurement(run, position=2))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [measurement.position for measurement in store.measurements()] == [1, 2]
