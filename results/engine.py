"""Connections to the store's database, and the words for what can go wrong with them.

Owns the reading of the store's URL, the settings of every connection, the kinds of transaction, and the
translation of a driver's error into one sentence. Who calls it: store.py and nobody else.

Thread safety: an engine may be used from any thread; each transaction has a connection of its own.

Invariants
1. Writing transactions on SQLite begin with BEGIN IMMEDIATE. A transaction that reads first and then
   asks for the write lock would fail at once, without waiting, when another writer came between.
2. Opening writes nothing to a file that is not known to be a store.
"""

from __future__ import annotations

import contextlib
import enum
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.pool import QueuePool

from results.errors import StoreError

DEFAULT_PATH = Path(__file__).resolve().parent / "tidemark.sqlite"

BUSY_TIMEOUT_S = 60.0
"""How long a writer waits for another one: many times the longest transaction, a bulk import of minutes excluded."""

_SQLITE_HEADER = b"SQLite format 3\x00"
_WRITE_OPTION = "tidemark_write"

_SQLITE_SENTENCES = {
    "SQLITE_FULL": "The disk that holds {where} is full; free some space and repeat the command, "
    "nothing that was stored before is lost.",
    "SQLITE_CORRUPT": "The file {where} is damaged and was left as it is; move it away, or import an export of it "
    "into a new store.",
    "SQLITE_NOTADB": "The file {where} is not a SQLite database and was left as it is; move it away, or name another "
    "in TIDEMARK_DB.",
    "SQLITE_BUSY": "Another process has kept {where} locked for {busy:.0f} seconds; end it and repeat the command.",
    "SQLITE_LOCKED": "Another process has kept {where} locked for {busy:.0f} seconds; end it and repeat the command.",
    "SQLITE_READONLY": "The file {where} can't be written; give yourself write permission on it and on its folder.",
    "SQLITE_CANTOPEN": "The file {where} can't be opened; check that its folder exists and that you may write there.",
    "SQLITE_PERM": "The file {where} can't be opened; check that you may read and write it.",
    "SQLITE_IOERR": "The disk that holds {where} reported an error; check its free space and its health, "
    "nothing that was stored before was touched.",
}

_POSTGRESQL_SENTENCES = {
    "53100": "The disk of the server that holds {where} is full; free some space there and repeat the command, "
    "nothing that was stored before is lost.",
    "53300": "The server that holds {where} has no connection left; try again later or raise its max_connections.",
    "3D000": "The database {where} does not exist; create it with createdb, or correct TIDEMARK_DB.",
    "28P01": "The server refused the password for {where}; correct TIDEMARK_DB or your .pgpass.",
    "28000": "The server refused the user for {where}; correct TIDEMARK_DB or the server's pg_hba.conf.",
    "42501": "You may not create or write tables in {where}; ask its owner for the permission.",
    "3F000": "You may not create or write tables in {where}; ask its owner for the permission.",
}


def resolve_url(url: str | None) -> URL:
    """Return the database's URL: the argument, else TIDEMARK_DB, else the file beside this package.

    A text without `://` is the path of a SQLite file. Raises StoreError for what is neither a SQLite
    file nor a PostgreSQL database.
    """
    text = url or os.environ.get("TIDEMARK_DB") or str(DEFAULT_PATH)
    if "://" not in text:
        return URL.create("sqlite", database=str(Path(text).expanduser()))
    try:
        parsed = make_url(text)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise StoreError(
            "TIDEMARK_DB is no URL that can be read; write a file's path or postgresql://user@host/database."
        ) from error
    backend = parsed.drivername.partition("+")[0]
    if backend in ("postgres", "postgresql"):
        return parsed.set(drivername="postgresql+psycopg2")
    if backend != "sqlite":
        raise StoreError(f"Tidemark keeps results in SQLite or PostgreSQL, not in {backend}; correct TIDEMARK_DB.")
    if not parsed.database or parsed.database == ":memory:":
        raise StoreError("A store in memory would lose its results; name a file in TIDEMARK_DB.")
    return parsed.set(drivername="sqlite")


def describe(url: URL) -> str:
    """Return how sentences name the database: the file's path, or the URL without its password."""
    return str(url.database if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True))


def create(url: URL) -> Engine:
    """Return an engine with every connection set up; touches no file and no network yet."""
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True)
    engine = sa.create_engine(
        url,
        poolclass=QueuePool,
        connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
    )
    sa.event.listen(engine, "connect", _configure_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _configure_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # pysqlite begins transactions by guessing from the statement; ours are begun by _begin_sqlite.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    # A commit has reached the disk when it returns: a figure may have cost minutes to measure.
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITE_OPTION, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextlib.contextmanager
def reading(engine: Engine, where: str) -> Iterator[Connection]:
    """A transaction that only reads. Raises StoreError for what the database can't do."""
    with translated(where), engine.connect() as connection, connection.begin():
        yield connection


@contextlib.contextmanager
def writing(engine: Engine, where: str) -> Iterator[Connection]:
    """A transaction that is kept whole or not at all. Raises StoreError for what the database can't do."""
    with translated(where), engine.connect() as connection:
        writer = connection.execution_options(**{_WRITE_OPTION: True})
        with writer.begin():
            yield writer


class Turn(enum.IntEnum):
    """What only one transaction at a time may do. Any numbers will do that nobody else uses in the same database."""

    MIGRATION = 0x71DE3A9C
    IMPORT = 0x71DE3A9D


def take_turns(connection: Connection, turn: Turn) -> None:
    """Wait until no other transaction has this turn, and keep it until the end of this one.

    On SQLite a writing transaction is alone anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(int(turn))))


def check_file(url: URL) -> None:
    """Refuse a SQLite path that can't be a store, before SQLite itself touches it. Raises StoreError."""
    path = Path(str(url.database))
    if path.is_dir():
        raise StoreError(f"{path} is a folder; name a file in TIDEMARK_DB.")
    if not path.parent.is_dir():
        raise StoreError(f"The folder {path.parent} does not exist; create it, or correct TIDEMARK_DB.")
    try:
        with path.open("rb") as file:
            header = file.read(len(_SQLITE_HEADER))
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"The file {path} can't be read ({error.strerror}); check its permissions.") from error
    if header and header != _SQLITE_HEADER:
        raise StoreError(_SQLITE_SENTENCES["SQLITE_NOTADB"].format(where=path))


def use_write_ahead_log(engine: Engine, where: str) -> None:
    """Let readers and one writer work at the same time; the file remembers it.

    SQLite answers "locked" without waiting when two processes switch a new file at once, so the wait is here.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection = engine.raw_connection()
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            finally:
                connection.close()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise StoreError(sentence_for(error, where)) from error
            time.sleep(0.01)


@contextlib.contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn what a driver raises into a StoreError with one sentence."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise StoreError(sentence_for(error.orig, where)) from error
    except sa.exc.StatementError as error:
        sentence = f"A value can't be stored in {where} ({error.orig}); correct it and record it again."
        raise StoreError(sentence) from error
    except (OverflowError, ValueError) as error:
        raise StoreError(f"A value can't be stored in {where} ({error}); correct it and record it again.") from error
    except sa.exc.TimeoutError as error:
        raise StoreError(f"All connections to {where} are in use; use fewer threads on one store.") from error


def sentence_for(error: BaseException | None, where: str) -> str:
    """Return the sentence for a driver's error; unknown ones are quoted with their first line."""
    code = getattr(error, "sqlite_errorname", None) or ""
    for name, sentence in _SQLITE_SENTENCES.items():
        if code == name or code.startswith(name + "_"):
            return sentence.format(where=where, busy=BUSY_TIMEOUT_S)
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    known = _POSTGRESQL_SENTENCES.get(getattr(error, "pgcode", None) or "")
    if known:
        return known.format(where=where)
    if getattr(error, "pgcode", "") is None:
        # psycopg2 gives no code for what fails before there is a session.
        return f"The database {where} can't be reached ({first_line}); start its server, or correct TIDEMARK_DB."
    return f"The database {where} refused the request ({first_line}); correct what it names and repeat the command."
