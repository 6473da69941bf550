"""Databases for the tests of the store: a fresh SQLite file or a fresh PostgreSQL database each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

for folder in (Path(__file__).resolve().parent, Path(__file__).resolve().parents[2]):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from postgresql_server import PostgresqlServer  # noqa: E402
from results import Store, open_store  # noqa: E402


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresqlServer]:
    """A server of the tests' own, reached through a socket in a temporary folder."""
    server = PostgresqlServer.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'store.sqlite'}"


@pytest.fixture
def postgresql_url(postgresql_server: PostgresqlServer) -> str:
    """The URL of an empty PostgreSQL database."""
    return postgresql_server.emptied_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database, of each kind in turn."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """An empty store, of each kind in turn."""
    with open_store(database_url) as opened:
        yield opened
