"""Brings a database to the version that this code speaks, one numbered step after the other.

Who calls it: store.open_store(), inside one write transaction, so that a database is at one version or
at the next and never between. Safe when several processes open a store at once: the transaction is
exclusive on SQLite (BEGIN IMMEDIATE) and holds an advisory lock on PostgreSQL.

Invariants
1. Step n leads from version n-1 to n: it adds the schema elements that say `since: n`, then runs the
   step's own transformation of the rows, if it has one.
2. A new database walks the same steps as an old one; there is no second way to create the tables.
3. A database that is newer than this code is refused before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.schema import CreateColumn

from results import engine, schema
from results.errors import StoreError
from results.records import utc_now


@dataclass(frozen=True)
class Step:
    """One version: what it brings, and how rows that exist are brought along."""

    version: int
    summary: str
    transform: Callable[[Connection], None] | None = None


STEPS: tuple[Step, ...] = (
    Step(1, "runs, measurements, samples and attachments"),
    Step(2, "indexes for every selection that the dashboard and the gate make"),
)


def since(element: sa.Table | sa.Column | sa.Index) -> int:
    """Return the version that an element of the schema came with."""
    return int(element.info.get("since", 1))


def stored_version(connection: Connection) -> int:
    """Return the version of the database, 0 for an empty one.

    Raises StoreError for a database that holds other tables and is none of ours.
    """
    present = set(sa.inspect(connection).get_table_names())
    if schema.schema_version.name not in present:
        foreign = present if connection.dialect.name == "sqlite" else present & set(schema.metadata.tables)
        if foreign:
            raise StoreError(
                f"The database holds tables of another program ({', '.join(sorted(foreign)[:3])}) and no "
                "Tidemark store; name another database in TIDEMARK_DB."
            )
        return 0
    try:
        version = connection.scalar(sa.select(sa.func.max(schema.schema_version.c.version)))
    except sa.exc.ProgrammingError as error:
        raise StoreError("The table schema_version is not Tidemark's; name another database in TIDEMARK_DB.") from error
    return int(version or 0)


def require_known(version: int, latest: int = schema.CURRENT_VERSION) -> None:
    """Refuse a database that a newer Tidemark wrote. Raises StoreError."""
    if version > latest:
        raise StoreError(
            f"The database has schema version {version} and this Tidemark knows versions up to {latest}; "
            "update this checkout, or name another database in TIDEMARK_DB."
        )


def migrate(
    connection: Connection,
    *,
    metadata: sa.MetaData = schema.metadata,
    steps: tuple[Step, ...] = STEPS,
) -> list[int]:
    """Apply the steps that are missing, in the caller's write transaction; return their numbers.

    Raises StoreError for a newer database or one that is none of ours.
    """
    engine.take_turns(connection, engine.Turn.MIGRATION)
    version = stored_version(connection)
    require_known(version, steps[-1].version)
    applied: list[int] = []
    for step in steps:
        if step.version <= version:
            continue
        _add_elements(connection, metadata, step.version)
        if step.transform is not None:
            step.transform(connection)
        connection.execute(
            schema.schema_version.insert().values(version=step.version, summary=step.summary, applied_at=utc_now())
        )
        applied.append(step.version)
    return applied


def _add_elements(connection: Connection, metadata: sa.MetaData, version: int) -> None:
    """Create the tables, then the columns, then the indexes that came with `version`."""
    for table in metadata.sorted_tables:
        if since(table) == version:
            _create_table(connection, table, version)
        elif since(table) < version:
            for column in table.columns:
                if since(column) == version:
                    _add_column(connection, column)
    for table in metadata.sorted_tables:
        for index in sorted(table.indexes, key=lambda each: str(each.name)):
            if max(since(index), since(table)) == version:
                connection.execute(sa.schema.CreateIndex(index))


def _create_table(connection: Connection, table: sa.Table, version: int) -> None:
    """Create a table as it was at `version`: without the columns that came later."""
    statement = sa.schema.CreateTable(table)
    statement.columns = [each for each in statement.columns if since(each.element) <= version]
    connection.execute(statement)


def _add_column(connection: Connection, column: sa.Column) -> None:
    preparer = connection.dialect.identifier_preparer
    definition = CreateColumn(column).compile(dialect=connection.dialect)
    connection.execute(sa.text(f"ALTER TABLE {preparer.format_table(column.table)} ADD COLUMN {definition}"))
