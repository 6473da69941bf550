"""Selections: from filters to rows, with a number of queries that does not depend on how much is found.

Who calls it: store.py. Pure functions over a connection, safe from any thread.

Invariants
1. Each function sends a fixed number of statements: measurements 1, plus 1 for samples, plus 1 for
   attachments; a frame 2. A list of found ids is never sent back to the database.
2. Order is total and the same on both databases: run, place in the interleaved order, time, id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pandas as pd
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.sql import ColumnElement, Select

from results import rows, schema
from results.records import Attachment, Build, Environment, Measurement, Run, Sample

Wanted = str | Collection[str] | None
"""One value, any of several, or `None` for all."""

run, environment, build = schema.run, schema.environment, schema.build
measurement, sample, attachment = schema.measurement, schema.sample, schema.attachment

_JOINED = measurement.join(run).join(environment).join(build)
_ORDER = (run.c.started_at, run.c.id, measurement.c.position, measurement.c.started_at, measurement.c.id)


@dataclass(frozen=True)
class Filter:
    """Which measurements are wanted. Each field is one value, a collection of values, or None for all."""

    run_id: Wanted = None
    workload: Wanted = None
    variant: Wanted = None
    provider: Wanted = None
    allocator: Wanted = None
    revision: Wanted = None
    status: Wanted = None
    environment_key: Wanted = None
    arm: Wanted = None
    profile: Wanted = None
    kind: Wanted = None
    measurement_id: Wanted = None

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the WHERE clauses over the joined tables."""
        columns = {
            measurement.c.run_id: self.run_id,
            measurement.c.workload: self.workload,
            measurement.c.variant: self.variant,
            measurement.c.provider: self.provider,
            build.c.allocator: self.allocator,
            build.c.revision: self.revision,
            measurement.c.status: self.status,
            environment.c.key: self.environment_key,
            measurement.c.arm: self.arm,
            measurement.c.profile: self.profile,
            run.c.kind: self.kind,
            measurement.c.id: self.measurement_id,
        }
        return [matches(column, wanted) for column, wanted in columns.items() if wanted is not None]


def matches(column: sa.Column, wanted: str | Collection[str]) -> ColumnElement[bool]:
    """Return the condition that a column holds one of the wanted values; an empty collection matches nothing."""
    return column == wanted if isinstance(wanted, str) else column.in_(sorted(set(wanted)))


def select_runs(connection: Connection, kind: Wanted, run_id: Wanted, limit: int | None) -> list[Run]:
    """Return runs, the newest first."""
    query = sa.select(run, *_labelled(environment)).select_from(run.join(environment))
    query = query.order_by(run.c.started_at.desc(), run.c.id.desc()).limit(limit)
    if kind is not None:
        query = query.where(matches(run.c.kind, kind))
    if run_id is not None:
        query = query.where(matches(run.c.id, run_id))
    found = connection.execute(query).mappings()
    return [rows.run_of(row, rows.environment_of(row, "environment_")) for row in found]


def select_measurements(
    connection: Connection, wanted: Filter, *, samples: bool = True, attachments: bool = False
) -> list[Measurement]:
    """Return the measurements that match, in order, with what hangs on them as asked for."""
    query = _filtered(wanted, measurement, *_labelled(build)).order_by(*_ORDER)
    found = connection.execute(query).mappings().all()
    series = _samples_by_measurement(connection, wanted) if samples else {}
    evidence = _attachments_by_measurement(connection, wanted) if attachments else {}
    builds: dict[str, Build] = {}
    result = []
    for row in found:
        shared = builds.setdefault(row["build_id"], rows.build_of(row, "build_"))
        result.append(rows.measurement_of(row, shared, series.get(row["id"], ()), evidence.get(row["id"], ())))
    return result


def _samples_by_measurement(connection: Connection, wanted: Filter) -> dict[str, list[Sample]]:
    query = _on_measurements(wanted, sample.c.measurement_id, *(sample.c[name] for name in rows.SAMPLE_FIELDS))
    series: dict[str, list[Sample]] = defaultdict(list)
    for measurement_id, *fields in connection.execute(query.order_by(sample.c.measurement_id, sample.c.ordinal)):
        series[measurement_id].append(Sample(*fields))
    return series


def _attachments_by_measurement(connection: Connection, wanted: Filter) -> dict[str, list[Attachment]]:
    query = _on_measurements(wanted, *attachment.c).order_by(attachment.c.measurement_id, attachment.c.ordinal)
    evidence: dict[str, list[Attachment]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        evidence[row["measurement_id"]].append(rows.attachment_of(row))
    return evidence


def select_frame(connection: Connection, wanted: Filter, metric: Wanted = None) -> pd.DataFrame:
    """Return one row a sample with the columns of its measurement, build, run and environment.

    Columns keep their names; where a name stands in several tables it is preceded by its table:
    `measurement_id`, `run_id`, `run_command`, `run_status`, `run_started_at`, `build_key`,
    `environment_key`. A measurement without samples gives no row.
    """
    columns = ("measurement_id", "ordinal", *rows.SAMPLE_FIELDS)
    query = _on_measurements(wanted, *(sample.c[name] for name in columns))
    if metric is not None:
        query = query.where(matches(sample.c.metric, metric))
    samples = _frame(connection, query.order_by(sample.c.measurement_id, sample.c.ordinal))
    # Joined here: the database would send, and Python would decode, each measurement's columns once a sample.
    owners = _frame(connection, _filtered(wanted, *_frame_columns()).order_by(*_ORDER))
    frame = owners.merge(samples, on="measurement_id", how="inner")
    return frame[[*columns, *(name for name in owners.columns if name not in columns)]]


def _frame(connection: Connection, query: Select) -> pd.DataFrame:
    found = connection.execute(query)
    return pd.DataFrame.from_records(found.all(), columns=list(found.keys()))


def _frame_columns() -> list[ColumnElement[Any]]:
    """Return what a frame says about a sample's measurement, each column with a name of its own."""
    return [
        measurement.c.id.label("measurement_id"),
        *(measurement.c[name] for name in _FRAME_MEASUREMENT),
        build.c.key.label("build_key"),
        *(build.c[name] for name in _FRAME_BUILD),
        run.c.kind,
        run.c.suite_revision,
        run.c.status.label("run_status"),
        run.c.command.label("run_command"),
        run.c.started_at.label("run_started_at"),
        environment.c.key.label("environment_key"),
        *(environment.c[name] for name in _FRAME_ENVIRONMENT),
    ]


_FRAME_BUILD = ("allocator", "revision", "dirty", "version", "compiler", "flags", "path", "sha256")
_FRAME_ENVIRONMENT = ("machine", "kernel", "cpu_model", "thp_mode", "governor", "libc")
_FRAME_MEASUREMENT = (
    "run_id",
    "workload",
    "variant",
    "profile",
    "provider",
    "arm",
    "status",
    "reason",
    "repeat",
    "position",
    "command",
    "active_allocator",
    "checksum",
    "operations",
    "started_at",
    "duration_s",
)


def select_attachments(connection: Connection, measurement_id: str, kind: str, limit: int | None = None) -> list[bytes]:
    """Return a measurement's attachments of a kind, in order, at most `limit`."""
    query = (
        sa.select(attachment)
        .where(attachment.c.measurement_id == measurement_id, attachment.c.kind == kind)
        .order_by(attachment.c.ordinal)
        .limit(limit)
    )
    return [rows.attachment_of(row).data for row in connection.execute(query).mappings()]


def select_attachment_kinds(connection: Connection, wanted: Filter) -> list[tuple[str, str, int]]:
    """Return (measurement id, kind, bytes unpacked) of every attachment, without reading any."""
    columns = (attachment.c.measurement_id, attachment.c.kind, attachment.c.size_bytes)
    query = (
        sa.select(*columns)
        .select_from(attachment.join(measurement).join(run).join(environment).join(build))
        .where(*wanted.conditions())
        .order_by(*_ORDER, attachment.c.ordinal)
    )
    return [(row[0], row[1], row[2]) for row in connection.execute(query)]


def select_environments(connection: Connection) -> list[Environment]:
    """Return every environment that is stored, in the order of its content's hash."""
    found = connection.execute(sa.select(environment).order_by(environment.c.id)).mappings()
    return [rows.environment_of(row) for row in found]


def _filtered(wanted: Filter, *columns: Any) -> Select:
    return sa.select(*columns).select_from(_JOINED).where(*wanted.conditions())


def _on_measurements(wanted: Filter, *columns: sa.Column) -> Select:
    """Select columns of a table that hangs on measurements, for those that match."""
    owner = columns[0].table.c.measurement_id
    return sa.select(*columns).where(owner.in_(_filtered(wanted, measurement.c.id)))


def _labelled(table: sa.Table) -> list[ColumnElement[Any]]:
    return [column.label(f"{table.name}_{column.name}") for column in table.columns if column.name != "id"]
