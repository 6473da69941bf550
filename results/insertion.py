"""Adds records to the database, each once and for good.

Who calls it: store.py and interchange.py, inside a write transaction of theirs. Safe beside any number of
other writers: an insert waits for a concurrent writer of the same key and then sees that writer's row.

Invariant: a row that exists is compared and never changed; only a run's status ends, once.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from results import queries, rows, schema
from results.errors import StoreError
from results.records import Measurement, Run, utc_now

END_STATUSES = ("finished", "interrupted", "failed")


def add_run(connection: Connection, run: Run) -> bool:
    """Add a run and its environment; return whether it was new. Raises StoreError if the stored one differs."""
    _add_if_new(connection, schema.environment, rows.row_of_environment(run.environment))
    if _add_if_new(connection, schema.run, rows.row_of_run(run)):
        return True
    if queries.select_runs(connection, None, run.id, None)[0] == run:
        return False
    raise StoreError(f"Run {run.id} exists with other content, and results are never overwritten; use a new id.")


def merge_run(connection: Connection, run: Run) -> bool:
    """Add a run of another store, or how it ended if it is still running here; return whether that was new.

    Raises StoreError if the two differ in anything but how far they had come.
    """
    stored = next(iter(queries.select_runs(connection, None, run.id, None)), None)
    if stored is None:
        return add_run(connection, run)
    if dataclasses.replace(stored, status=run.status, finished_at=run.finished_at) != run:
        raise StoreError(f"Run {run.id} differs from the stored run of that id, and results are never overwritten.")
    ended_since = stored.status == "running" and run.status != "running"
    resumed_since = stored.status == "interrupted" and run.status in ("finished", "failed")
    if not ended_since and not resumed_since:
        return False
    ended = schema.run.update().where(schema.run.c.id == run.id)
    connection.execute(ended.values(status=run.status, finished_at=run.finished_at))
    return True


def end_run(connection: Connection, run_id: str, status: str) -> None:
    """End a run that is running or was interrupted. Raises StoreError if there is none or it ended otherwise."""
    if status not in END_STATUSES:
        raise StoreError(f"A run can't end as {status!r}; say one of {', '.join(END_STATUSES)}.")
    change = (
        schema.run.update()
        .where(schema.run.c.id == run_id, schema.run.c.status.in_(("running", "interrupted")))
        .values(status=status, finished_at=utc_now())
    )
    if connection.execute(change).rowcount == 1:
        return
    stored = connection.scalar(sa.select(schema.run.c.status).where(schema.run.c.id == run_id))
    if stored is None:
        raise StoreError(f"There is no run {run_id} in the store; begin it before it is ended.")
    if stored != status:
        raise StoreError(f"Run {run_id} has ended as {stored!r} already; begin a new run.")


def add_measurement(connection: Connection, measurement: Measurement) -> bool:
    """Add a measurement with its build, samples and attachments; return whether it was new.

    Raises StoreError if its run is unknown, if a figure is not finite, or if the stored one differs.
    """
    known = connection.scalar(sa.select(schema.run.c.id).where(schema.run.c.id == measurement.run_id))
    if known is None:
        raise StoreError(f"There is no run {measurement.run_id} for this measurement; call begin_run() first.")
    row = rows.row_of_measurement(measurement)
    hanging = (
        (schema.sample, rows.rows_of_samples(measurement)),
        (schema.attachment, rows.rows_of_attachments(measurement)),
    )
    _add_if_new(connection, schema.build, rows.row_of_build(measurement.build))
    if not _add_if_new(connection, schema.measurement, row):
        _require_equal(connection, measurement)
        return False
    for table, added in hanging:
        if added:
            connection.execute(table.insert(), added)
    return True


def _require_equal(connection: Connection, measurement: Measurement) -> None:
    wanted = queries.Filter(measurement_id=measurement.id)
    if queries.select_measurements(connection, wanted, attachments=True) != [measurement]:
        raise StoreError(
            f"Measurement {measurement.id} exists with other content, and results are never overwritten; use a new id."
        )


def _add_if_new(connection: Connection, table: sa.Table, row: dict[str, Any]) -> bool:
    """Insert a row unless its id exists; return whether it did."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = dialect.insert(table).values(row).on_conflict_do_nothing(index_elements=["id"])
    return bool(connection.execute(statement).rowcount == 1)
