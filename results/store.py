"""The store: the API through which everything else reads and writes results.

Owns the engine. Who calls it: harness/ to write, judge and report, dashboards/ to read.

Thread safety: a Store may be used from any number of threads, and any number of processes may open the
same database; writers wait for each other. After a fork the child makes its own connections.

Invariants
1. Results are never overwritten. Recording an id that exists is accepted only if nothing differs.
2. record() is one transaction: a process that is killed leaves a whole measurement or none.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

import pandas as pd
from sqlalchemy.engine import URL, Connection

from results import engine as engines
from results import insertion, interchange, migrations, queries, schema
from results.queries import Filter, Wanted
from results.records import Environment, Measurement, Run


def open_store(url: str | None = None) -> Store:
    """Open the database that `url` or TIDEMARK_DB names, else results/tidemark.sqlite; create it if it is new.

    `url` is a path, `sqlite:///path` or `postgresql://user@host/database`. An older database is brought to
    this version. Raises StoreError for one that can't be used; its file is then as it was.
    """
    parsed = engines.resolve_url(url)
    if parsed.get_backend_name() == "sqlite":
        engines.check_file(parsed)
    store = Store(parsed)
    try:
        store._prepare()
    except BaseException:
        store.close()
        raise
    return store


class Store:
    """An open database of results. Get one from open_store(); close it, or use it in a `with`."""

    def __init__(self, url: URL) -> None:
        self._where = engines.describe(url)
        self._engine = engines.create(url)
        self._process = os.getpid()

    @property
    def location(self) -> str:
        """The file's path, or the database's URL without its password."""
        return self._where

    def begin_run(self, run: Run) -> None:
        """Add a run and its environment. Raises StoreError if another run has its id."""
        with self._writing() as connection:
            insertion.add_run(connection, run)

    def record(self, measurement: Measurement) -> None:
        """Add a measurement with its build, samples and attachments, in one transaction.

        Raises StoreError if its run was not begun, if a figure is not finite, or if its id exists with
        other content; the store is then as it was.
        """
        with self._writing() as connection:
            insertion.add_measurement(connection, measurement)

    def finish_run(self, run_id: str, status: str) -> None:
        """End a run: `finished`, `interrupted` or `failed`. An interrupted one may be ended again after it was resumed.

        Raises StoreError for an unknown run or status, and for a run that has ended otherwise.
        """
        with self._writing() as connection:
            insertion.end_run(connection, run_id, status)

    def runs(self, kind: Wanted = None, limit: int | None = None, run_id: Wanted = None) -> list[Run]:
        """Return runs, the newest first, at most `limit`; `kind` and `run_id` take one value or several."""
        with self._reading() as connection:
            return queries.select_runs(connection, kind, run_id, limit)

    def measurements(
        self,
        run_id: Wanted = None,
        workload: Wanted = None,
        variant: Wanted = None,
        provider: Wanted = None,
        allocator: Wanted = None,
        revision: Wanted = None,
        status: Wanted = None,
        environment_key: Wanted = None,
        arm: Wanted = None,
        *,
        profile: Wanted = None,
        kind: Wanted = None,
        measurement_id: Wanted = None,
        samples: bool = True,
        attachments: bool = False,
    ) -> list[Measurement]:
        """Return the measurements that match every filter, in the order they were made, run after run.

        A filter is one value or a collection of them. Attachments can be large and are left out unless
        asked for; `samples=False` leaves the samples out too.
        """
        wanted = Filter(
            run_id,
            workload,
            variant,
            provider,
            allocator,
            revision,
            status,
            environment_key,
            arm,
            profile,
            kind,
            measurement_id,
        )
        with self._reading() as connection:
            return queries.select_measurements(connection, wanted, samples=samples, attachments=attachments)

    def samples_frame(
        self,
        run_id: Wanted = None,
        workload: Wanted = None,
        variant: Wanted = None,
        provider: Wanted = None,
        allocator: Wanted = None,
        revision: Wanted = None,
        status: Wanted = None,
        environment_key: Wanted = None,
        arm: Wanted = None,
        *,
        profile: Wanted = None,
        kind: Wanted = None,
        measurement_id: Wanted = None,
        metric: Wanted = None,
    ) -> pd.DataFrame:
        """Return one row a sample with the columns of its measurement, build, run and environment.

        The filters are those of measurements(), and `metric`. See queries.select_frame for the columns.
        """
        wanted = Filter(
            run_id,
            workload,
            variant,
            provider,
            allocator,
            revision,
            status,
            environment_key,
            arm,
            profile,
            kind,
            measurement_id,
        )
        with self._reading() as connection:
            return queries.select_frame(connection, wanted, metric)

    def environments(self) -> list[Environment]:
        """Return every environment that a run of this store was made in."""
        with self._reading() as connection:
            return queries.select_environments(connection)

    def attachment(self, measurement_id: str, kind: str) -> bytes | None:
        """Return the first attachment of that kind, unpacked, or None."""
        with self._reading() as connection:
            return next(iter(queries.select_attachments(connection, measurement_id, kind, limit=1)), None)

    def attachments(self, measurement_id: str, kind: str) -> list[bytes]:
        """Return every attachment of that kind, unpacked, in the order they were recorded."""
        with self._reading() as connection:
            return queries.select_attachments(connection, measurement_id, kind)

    def attachment_kinds(self, run_id: Wanted = None, measurement_id: Wanted = None) -> list[tuple[str, str, int]]:
        """Return (measurement id, kind, size in bytes) of the attachments of runs or measurements, unread."""
        with self._reading() as connection:
            return queries.select_attachment_kinds(connection, Filter(run_id=run_id, measurement_id=measurement_id))

    def export(self, path: str | Path) -> int:
        """Write the whole store as JSON lines, compressed if the name ends in .gz; return the number of records."""
        with self._reading() as connection:
            return interchange.export(connection, Path(path))

    def import_(self, path: str | Path) -> int:
        """Merge an export by id and return how many records were new; repeating it changes nothing.

        All of the file or nothing is merged. Raises StoreError for a file that is no export, and for a record
        that differs from the stored one of the same id.
        """
        with self._writing() as connection:
            return interchange.import_(connection, Path(path))

    def close(self) -> None:
        """Give every connection back. The store can't be used afterwards."""
        self._engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepare(self) -> None:
        """Bring the database to the current version; write nothing if it has it already."""
        with self._reading() as connection:
            version = migrations.stored_version(connection)
            migrations.require_known(version)
        if version == schema.CURRENT_VERSION:
            return
        if version == 0 and self._engine.dialect.name == "sqlite":
            engines.use_write_ahead_log(self._engine, self._where)
        with self._writing() as connection:
            migrations.migrate(connection)

    def _reading(self) -> AbstractContextManager[Connection]:
        self._leave_parent_connections()
        return engines.reading(self._engine, self._where)

    def _writing(self) -> AbstractContextManager[Connection]:
        self._leave_parent_connections()
        return engines.writing(self._engine, self._where)

    def _leave_parent_connections(self) -> None:
        """After a fork: forget the parent's connections without closing them under it."""
        if self._process != os.getpid():
            self._engine.dispose(close=False)
            self._process = os.getpid()
