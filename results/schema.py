"""The tables of the store, written once for SQLite and PostgreSQL.

Owns the MetaData that queries are built from and that migrations create tables from. Who calls it:
migrations.py (to create), queries.py and store.py (to read and write). Immutable after import, so it is
safe from any thread.

Invariants
1. A table, column or index that came with a later version says so: `info={"since": n}`. Without it the
   element belongs to version 1. What has shipped is never edited, so that version n can be rebuilt.
2. Rows are only ever added. The single exception is a run's status, which ends once.
3. `environment` and `build` are keyed by the hash of their content: equal facts share one row, and two
   writers that add the same fact at once add the same row.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import sqlalchemy as sa

CURRENT_VERSION = 2
"""The version that this code reads and writes; the last step in migrations.py leads to it."""


class UtcDateTime(sa.types.TypeDecorator):  # type: ignore[misc]
    """An aware UTC time to the microsecond: timestamptz on PostgreSQL, naive UTC text on SQLite."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        """Convert an aware time to what the database keeps; a naive time is a caller's mistake."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"the time {value.isoformat()} has no time zone")
        utc = value.astimezone(timezone.utc)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        """Give back an aware time in UTC, whatever the session's own time zone is."""
        if value is None:
            return None
        return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)


# FLOAT(53) is double precision on PostgreSQL and an 8-byte REAL on SQLite: the same bits as Python's.
DOUBLE = sa.Float(53)

metadata = sa.MetaData()

schema_version = sa.Table(
    "schema_version",
    metadata,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("summary", sa.Text, nullable=False),
    sa.Column("applied_at", UtcDateTime, nullable=False),
)

environment = sa.Table(
    "environment",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("key", sa.String(16), nullable=False),
    sa.Column("machine", sa.Text, nullable=False),
    sa.Column("kernel", sa.Text, nullable=False),
    sa.Column("cpu_model", sa.Text, nullable=False),
    sa.Column("cpu_count", sa.Integer, nullable=False),
    sa.Column("memory_bytes", sa.BigInteger, nullable=False),
    sa.Column("page_size_bytes", sa.Integer, nullable=False),
    sa.Column("thp_mode", sa.Text, nullable=False),
    sa.Column("governor", sa.Text, nullable=False),
    sa.Column("libc", sa.Text, nullable=False),
    sa.Column("tunables", sa.Text, nullable=False),
    sa.Column("tools", sa.JSON, nullable=False),
)

build = sa.Table(
    "build",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("key", sa.String(16), nullable=False),
    sa.Column("allocator", sa.Text, nullable=False),
    sa.Column("revision", sa.Text, nullable=False),
    sa.Column("dirty", sa.Boolean, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("compiler", sa.Text, nullable=False),
    sa.Column("flags", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
)

run = sa.Table(
    "run",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("command", sa.Text, nullable=False),
    sa.Column("suite_revision", sa.Text, nullable=False),
    sa.Column("environment_id", sa.ForeignKey("environment.id"), nullable=False),
    sa.Column("started_at", UtcDateTime, nullable=False),
    sa.Column("finished_at", UtcDateTime),
    sa.Column("status", sa.Text, nullable=False),
)

measurement = sa.Table(
    "measurement",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("run_id", sa.ForeignKey("run.id"), nullable=False),
    sa.Column("build_id", sa.ForeignKey("build.id"), nullable=False),
    sa.Column("workload", sa.Text, nullable=False),
    sa.Column("variant", sa.Text, nullable=False),
    sa.Column("profile", sa.Text, nullable=False),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("arm", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("repeat", sa.Integer, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("command", sa.Text, nullable=False),
    sa.Column("active_allocator", sa.Text, nullable=False),
    sa.Column("modes", sa.JSON, nullable=False),
    sa.Column("checksum", sa.Text, nullable=False),
    sa.Column("operations", sa.BigInteger),
    sa.Column("started_at", UtcDateTime, nullable=False),
    sa.Column("duration_s", DOUBLE, nullable=False),
)

# Clustered by measurement on SQLite: a series is read in one walk, and there is no second copy of the key.
sample = sa.Table(
    "sample",
    metadata,
    sa.Column("measurement_id", sa.ForeignKey("measurement.id"), primary_key=True),
    sa.Column("ordinal", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("metric", sa.Text, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("value", DOUBLE, nullable=False),
    sa.Column("checkpoint", sa.Integer),
    sa.Column("label", sa.Text),
    sa.Column("time_s", DOUBLE),
    sa.Column("detail", sa.Text),
    sqlite_with_rowid=False,
)

attachment = sa.Table(
    "attachment",
    metadata,
    sa.Column("measurement_id", sa.ForeignKey("measurement.id"), primary_key=True),
    sa.Column("ordinal", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("encoding", sa.Text, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)


def _index_since_2(name: str, *columns: sa.Column) -> sa.Index:
    return sa.Index(name, *columns, info={"since": 2})


# Every filter of Store.measurements() that selects few rows of many has its index; `status`, `arm` and
# `provider` take a handful of values each, so they narrow what another index has found.
_index_since_2("run_kind_started", run.c.kind, run.c.started_at)
_index_since_2("run_environment", run.c.environment_id)
_index_since_2("environment_by_key", environment.c.key)
_index_since_2("build_allocator_revision", build.c.allocator, build.c.revision)
_index_since_2("build_revision", build.c.revision)
_index_since_2("measurement_run", measurement.c.run_id, measurement.c.position)
_index_since_2("measurement_workload", measurement.c.workload, measurement.c.variant, measurement.c.provider)
_index_since_2("measurement_build", measurement.c.build_id)
