"""What the dashboard and the gate ask of a store of 100,000 samples takes few statements, each through an index."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from results import Sample, Store, insertion, open_store
from store_factory import EPOCH, make_build, make_measurement, make_run

RUNS = 50
MEASUREMENTS_A_RUN = 20
SAMPLES = 100


def _fill(store: Store, runs: int) -> None:
    """Fill in one transaction: what is tested is how a large store is read."""
    series = tuple(Sample("rss_bytes", "bytes", float(n), n, "round", n / 10) for n in range(SAMPLES - 1))
    samples = (*series, Sample("instructions", "instructions", 1e9))
    with store._writing() as connection:
        for age in range(runs):
            run = make_run(started_at=EPOCH + timedelta(hours=age), kind="bench" if age % 2 else "compare")
            insertion.add_run(connection, run)
            for position in range(MEASUREMENTS_A_RUN):
                measurement = make_measurement(
                    run, position=position, workload=f"workload{position % 10}", arm="tree" if position % 2 else "pin",
                    build=make_build("ebb", f"{age:040x}"), attachments=(),
                )  # fmt: skip
                insertion.add_measurement(connection, dataclasses.replace(measurement, samples=samples))
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("ANALYZE"))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A SQLite store of 100,000 samples."""
    with open_store(str(tmp_path_factory.mktemp("scale") / "large.sqlite")) as store:
        _fill(store, RUNS)
        assert RUNS * MEASUREMENTS_A_RUN * SAMPLES == 100_000
        yield store


QUERIES: dict[str, Callable[[Store, str], Any]] = {
    "runs": lambda store, run: store.runs(kind="bench", limit=10),
    "one run": lambda store, run: store.measurements(run_id=run),
    "one workload of one revision": lambda store, run: store.measurements(
        revision="0" * 39 + "7", workload="workload3"
    ),
    "a frame of one run": lambda store, run: store.samples_frame(run_id=run),
    "a frame of one commit": lambda store, run: store.samples_frame(allocator="ebb", revision="0" * 39 + "7"),
    "attachments of one run": lambda store, run: store.attachment_kinds(run),
    "evidence of one run": lambda store, run: store.measurements(run_id=run, attachments=True),
}
STATEMENTS_MAX = 3


@contextmanager
def _statements(store: Store) -> Iterator[list[tuple[str, Any]]]:
    sent: list[tuple[str, Any]] = []

    def note(connection, cursor, statement, parameters, context, executemany) -> None:  # type: ignore[no-untyped-def]
        if statement.startswith("SELECT"):
            sent.append((statement, parameters))

    sa.event.listen(store._engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        sa.event.remove(store._engine, "before_cursor_execute", note)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_sends_few_statements_and_none_reads_a_whole_large_table(large: Store, name: str) -> None:
    run = large.runs(limit=1)[0].id
    with _statements(large) as sent:
        assert len(QUERIES[name](large, run)) > 0 or name == "attachments of one run"
    assert 1 <= len(sent) <= STATEMENTS_MAX
    with large._reading() as connection:
        for statement, parameters in sent:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            scans = [row[3] for row in plan if row[3].startswith("SCAN")]
            allowed = ("SCAN environment", "SCAN run") if name == "runs" else ("SCAN environment",)
            assert [scan for scan in scans if not scan.startswith(allowed)] == [], (statement, plan)


def test_one_runs_query_does_not_grow_with_the_store(large: Store, tmp_path: Path) -> None:
    """Fifty times the samples; without the indexes the same query takes some fifty times as long."""
    with open_store(str(tmp_path / "small.sqlite")) as small:
        _fill(small, 1)

        def seconds(store: Store) -> float:
            run = store.runs(limit=1)[0].id
            taken = []
            for _ in range(5):
                begun = time.perf_counter()
                assert len(store.measurements(run_id=run)) == MEASUREMENTS_A_RUN
                taken.append(time.perf_counter() - begun)
            return min(taken)

        assert seconds(large) < 8 * seconds(small)


def test_postgresql_can_read_one_run_through_indexes(postgresql_url: str) -> None:
    """A small table is read whole for good reason, so the planner is asked what it could do without that."""
    with open_store(postgresql_url) as store:
        _fill(store, 4)
        run = store.runs(limit=1)[0].id
        with _statements(store) as sent:
            assert len(store.measurements(run_id=run)) == MEASUREMENTS_A_RUN
        assert len(sent) == 2
        with store._reading() as connection:
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            plans = ["\n".join(row[0] for row in connection.exec_driver_sql(f"EXPLAIN {s}", p)) for s, p in sent]
        for plan in plans:
            assert "measurement_run" in plan and "Seq Scan" not in plan, plan
        assert "sample_pkey" in plans[1]
