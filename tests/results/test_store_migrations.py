"""A store of any earlier version opens as the current one; a newer one is refused as it stands."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from make_v1_fixture import FIXTURE, contents
from results import StoreError, engine, migrations, open_store, schema
from results.records import utc_now
from store_factory import make_measurement, make_run


@pytest.fixture
def version_1(tmp_path: Path) -> Path:
    path = tmp_path / "v1.sqlite"
    with sqlite3.connect(path) as raw:
        raw.executescript(FIXTURE.read_text(encoding="utf-8"))
    return path


def _versions(path: Path) -> list[int]:
    with sqlite3.connect(path) as raw:
        return [version for (version,) in raw.execute("SELECT version FROM schema_version ORDER BY version")]


def test_a_store_of_version_1_opens_with_everything_in_it(version_1: Path) -> None:
    assert _versions(version_1) == [1]
    run, measurements = contents()
    with open_store(str(version_1)) as store:
        assert store.runs() == [run]
        assert store.measurements(attachments=True) == measurements
        added = make_measurement(run, position=3)
        store.record(added)
        assert store.measurements(attachments=True) == [*measurements, added]
    assert _versions(version_1) == list(range(1, schema.CURRENT_VERSION + 1))


def test_a_migrated_store_has_the_same_tables_and_indexes_as_a_new_one(version_1: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.sqlite"
    for path in (version_1, new):
        open_store(str(path)).close()
    statements = []
    for path in (version_1, new):
        with sqlite3.connect(path) as raw:
            statements.append(raw.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall())
    normalized = [[(kind, name, "".join((sql or "").split())) for kind, name, sql in each] for each in statements]
    assert normalized[0] == normalized[1]


def test_the_database_is_what_the_schema_says(database_url: str) -> None:
    open_store(database_url).close()
    opened = engine.create(engine.resolve_url(database_url))
    inspector = sa.inspect(opened)
    assert set(inspector.get_table_names()) == set(schema.metadata.tables)
    for name, table in schema.metadata.tables.items():
        assert [column["name"] for column in inspector.get_columns(name)] == [column.name for column in table.columns]
        assert {column["name"]: column["nullable"] for column in inspector.get_columns(name)} == {
            column.name: column.nullable for column in table.columns
        }
        assert inspector.get_pk_constraint(name)["constrained_columns"] == [c.name for c in table.primary_key]
        assert {key["referred_table"] for key in inspector.get_foreign_keys(name)} == {
            key.column.table.name for key in table.foreign_keys
        }
        assert {index["name"]: index["column_names"] for index in inspector.get_indexes(name)} == {
            index.name: [column.name for column in index.columns] for index in table.indexes
        }
    opened.dispose()


def test_the_last_step_leads_to_the_current_version() -> None:
    assert [step.version for step in migrations.STEPS] == list(range(1, schema.CURRENT_VERSION + 1))
    elements = [
        element for table in schema.metadata.sorted_tables for element in (table, *table.columns, *table.indexes)
    ]
    assert max(migrations.since(element) for element in elements) <= schema.CURRENT_VERSION


def test_opening_a_current_store_writes_nothing(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    open_store(sqlite_url).close()
    before = path.read_bytes()
    with open_store(sqlite_url) as store:
        assert store.runs() == []
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def _claim_newer(url: str) -> None:
    opened = engine.create(engine.resolve_url(url))
    with engine.writing(opened, url) as connection:
        newer = {"version": schema.CURRENT_VERSION + 1, "summary": "from the future", "applied_at": utc_now()}
        connection.execute(schema.schema_version.insert().values(newer))
    opened.dispose()


def test_a_newer_store_is_refused_in_one_sentence(database_url: str) -> None:
    open_store(database_url).close()
    _claim_newer(database_url)
    with pytest.raises(StoreError) as refusal:
        open_store(database_url)
    assert f"schema version {schema.CURRENT_VERSION + 1}" in str(refusal.value)
    assert "update this checkout" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_newer_file_is_left_untouched(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    open_store(sqlite_url).close()
    _claim_newer(sqlite_url)
    before = path.read_bytes()
    with pytest.raises(StoreError):
        open_store(sqlite_url)
    assert path.read_bytes() == before


def _later_schema() -> sa.MetaData:
    """A schema in which a column and a table came with version 2, and an index with version 3."""
    later = sa.MetaData()
    fact = sa.Table(
        "fact",
        later,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("size_bytes", sa.BigInteger, nullable=False, server_default="0", info={"since": 2}),
    )
    sa.Table("note", later, sa.Column("id", sa.Integer, primary_key=True), info={"since": 2})
    sa.Index("fact_by_size", fact.c.size_bytes, info={"since": 3})
    schema.schema_version.to_metadata(later)
    return later


def test_columns_tables_and_transformations_of_later_versions_are_applied_in_order(database_url: str) -> None:
    later = _later_schema()
    fact = later.tables["fact"]

    def double(connection: sa.engine.Connection) -> None:
        connection.execute(fact.update().values(size_bytes=2 * fact.c.id))

    steps = (migrations.Step(1, "one"), migrations.Step(2, "two", double), migrations.Step(3, "three"))
    opened = engine.create(engine.resolve_url(database_url))
    with engine.writing(opened, database_url) as connection:
        assert migrations.migrate(connection, metadata=later, steps=steps[:1]) == [1]
        assert [column["name"] for column in sa.inspect(connection).get_columns("fact")] == ["id"]
        connection.execute(sa.text("INSERT INTO fact (id) VALUES (21)"))
    with engine.writing(opened, database_url) as connection:
        assert migrations.migrate(connection, metadata=later, steps=steps) == [2, 3]
        assert connection.execute(sa.select(fact)).all() == [(21, 42)]
        assert sa.inspect(connection).get_indexes("fact")[0]["name"] == "fact_by_size"
        assert sa.inspect(connection).has_table("note")
        assert migrations.migrate(connection, metadata=later, steps=steps) == []
    opened.dispose()


def test_a_migration_that_fails_leaves_the_version_before(database_url: str) -> None:
    later = _later_schema()

    def fail(connection: sa.engine.Connection) -> None:
        raise ZeroDivisionError

    opened = engine.create(engine.resolve_url(database_url))
    with engine.writing(opened, database_url) as connection:
        migrations.migrate(connection, metadata=later, steps=(migrations.Step(1, "one"),))
    steps = (migrations.Step(1, "one"), migrations.Step(2, "two", fail))
    with pytest.raises(ZeroDivisionError), engine.writing(opened, database_url) as connection:
        migrations.migrate(connection, metadata=later, steps=steps)
    with engine.reading(opened, database_url) as connection:
        assert migrations.stored_version(connection) == 1
        assert [column["name"] for column in sa.inspect(connection).get_columns("fact")] == ["id"]
        assert not sa.inspect(connection).has_table("note")
    opened.dispose()


def _open_and_begin(url: str) -> str:
    run = make_run()
    with open_store(url) as store:
        store.begin_run(run)
    return run.id


def test_processes_that_create_a_store_at_once_agree(database_url: str) -> None:
    with ProcessPoolExecutor(4) as pool:
        begun = list(pool.map(_open_and_begin, [database_url] * 8))
    with open_store(database_url) as store:
        assert {run.id for run in store.runs()} == set(begun)
