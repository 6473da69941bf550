"""Whatever is wrong with the database is said in one sentence, and what was stored stays as it is."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from postgresql_server import PostgresqlServer
from results import Attachment, StoreError, engine, open_store
from results.engine import resolve_url
from store_factory import make_measurement, make_run


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A store that was closed with 40 measurements in it."""
    path = tmp_path / "filled.sqlite"
    run = make_run()
    with open_store(str(path)) as store:
        store.begin_run(run)
        for position in range(40):
            store.record(make_measurement(run, position=position, samples=60))
    return path


def _refusal(url: str) -> str:
    with pytest.raises(StoreError) as refusal:
        open_store(url)
    sentence = str(refusal.value)
    assert "\n" not in sentence and sentence.endswith(".")
    return sentence


def _garbage(path: Path) -> None:
    path.write_text("These are not the bytes of a database, and there are more than sixteen of them.\n" * 100)


def _short_garbage(path: Path) -> None:
    path.write_bytes(b"abc")


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _overwrite_schema(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xa5" * (4096 - 100)
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("damage", [_garbage, _short_garbage, _cut, _overwrite_schema])
def test_a_damaged_file_is_named_and_left_untouched(filled: Path, damage: Callable[[Path], None]) -> None:
    damage(filled)
    before = filled.read_bytes()
    assert str(filled) in _refusal(str(filled))
    assert filled.read_bytes() == before


def test_damage_in_the_middle_is_named_when_it_is_read(filled: Path) -> None:
    data = bytearray(filled.read_bytes())
    for page in range(12, len(data) // 4096):
        data[page * 4096 : page * 4096 + 512] = b"\xa5" * 512
    filled.write_bytes(bytes(data))
    with open_store(str(filled)) as store:
        with pytest.raises(StoreError, match="damaged and was left as it is"):
            store.measurements(attachments=True)
    assert filled.read_bytes() == bytes(data)


def test_a_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "cookies.sqlite"
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE moz_cookies (id INTEGER)")
    before = path.read_bytes()
    assert "another program (moz_cookies)" in _refusal(str(path))
    assert path.read_bytes() == before


def test_a_version_table_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE schema_version (number TEXT)")
    _refusal(str(path))


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite"
    path.touch()
    with open_store(str(path)) as store:
        assert store.runs() == []


def test_paths_that_cannot_hold_a_store(tmp_path: Path) -> None:
    assert "is a folder" in _refusal(str(tmp_path))
    assert "does not exist; create it" in _refusal(str(tmp_path / "absent" / "store.sqlite"))
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://host/base", "SQLite or PostgreSQL, not in mysql"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("postgresql://host:port/x", "no URL that can be read"),
    ],
)
def test_urls_that_name_no_store(url: str, words: str) -> None:
    assert words in _refusal(url)


def test_the_environment_names_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_DB", str(tmp_path / "named.sqlite"))
    with open_store() as store:
        assert store.location == str(tmp_path / "named.sqlite")
    monkeypatch.setenv("TIDEMARK_DB", "")
    assert resolve_url(None).database == str(engine.DEFAULT_PATH)
    assert resolve_url("postgres://someone@host/base").drivername == "postgresql+psycopg2"


def test_a_password_is_in_no_sentence(tmp_path: Path) -> None:
    sentence = _refusal(f"postgresql://user:secret@/base?host={tmp_path}")
    assert "can't be reached" in sentence and "secret" not in sentence


def test_a_missing_postgresql_database_is_named(postgresql_server: PostgresqlServer) -> None:
    assert 'database "absent" does not exist' in _refusal(postgresql_server.url("absent"))


def test_a_postgresql_database_that_may_not_be_written_is_named(postgresql_server: PostgresqlServer) -> None:
    url = postgresql_server.emptied_database()
    postgresql_server.execute("DROP ROLE IF EXISTS guest")
    postgresql_server.execute("CREATE ROLE guest LOGIN")
    assert "ask its owner for the permission" in _refusal(url.replace("//postgres@", "//guest@"))


def test_a_full_disk_loses_nothing(filled: Path) -> None:
    """SQLite's own limit of pages answers as a full disk does: SQLITE_FULL in the middle of a transaction."""
    with open_store(str(filled)) as store:
        stored = store.measurements(attachments=True)
        run = store.runs()[0]

        def limit(connection: sqlite3.Connection, _record: object) -> None:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages + 4}")

        sa.event.listen(store._engine, "connect", limit)
        store._engine.dispose()
        incompressible = random.Random(1).randbytes(1 << 18)
        with pytest.raises(StoreError, match="is full; free some space"):
            store.record(make_measurement(run, attachments=(Attachment("profile", incompressible),)))
        assert store.measurements(attachments=True) == stored
        sa.event.remove(store._engine, "connect", limit)
        store._engine.dispose()
        added = make_measurement(run, position=99)
        store.record(added)
        assert store.measurements(attachments=True) == [*stored, added]


def test_a_locked_file_is_named_after_the_wait(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_S", 0.05)
    with open_store(str(filled)) as store:
        blocker = sqlite3.connect(filled, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="Another process has kept"):
            store.begin_run(make_run())
        assert len(store.runs()) == 1
        blocker.close()
        store.begin_run(make_run())
        assert len(store.runs()) == 2
