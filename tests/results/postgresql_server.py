"""A PostgreSQL server for the time of a test session.

Owns a temporary cluster and the one process that serves it. It listens on a socket in its own folder and
on no port, so any number of sessions run side by side. The server dies with the process that started it.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psycopg2

_INSTALLATIONS = Path("/usr/lib/postgresql")
_SERVER_USER = "postgres"
_PR_SET_PDEATHSIG = 1


@dataclass
class PostgresqlServer:
    """A running server; stop() it."""

    folder: Path
    process: subprocess.Popen[str]

    @classmethod
    def start(cls) -> PostgresqlServer:
        """Make a cluster and serve it. Raises AssertionError with the server's own words if that fails."""
        binaries = _binaries()
        folder = Path(tempfile.mkdtemp(prefix="tidemark-pg-"))
        account = _account()
        if account:
            shutil.chown(folder, *account)
        try:
            made = subprocess.run(
                [
                    binaries / "initdb",
                    "-D",
                    folder / "data",
                    "-U",
                    _SERVER_USER,
                    "-A",
                    "trust",
                    "-E",
                    "UTF8",
                    "--locale=C",
                    "--no-sync",
                    "--no-instructions",
                ],
                capture_output=True,
                text=True,
                cwd=folder,
                **_identity(account),
            )
            assert made.returncode == 0, f"initdb failed: {made.stderr}"
            process = subprocess.Popen(
                [binaries / "postgres", "-D", folder / "data", "-k", folder, "-c", "listen_addresses=", "-F"],
                stderr=subprocess.PIPE,
                text=True,
                cwd=folder,
                preexec_fn=_die_with_parent,
                **_identity(account),
            )
            said = []
            assert process.stderr is not None
            for line in process.stderr:
                said.append(line)
                if "ready to accept connections" in line:
                    break
            else:
                process.wait()
                raise AssertionError(f"postgres did not start: {''.join(said)}")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(folder, process)

    def url(self, database: str) -> str:
        """Return the URL by which a store opens a database of this server."""
        return f"postgresql://{_SERVER_USER}@/{database}?host={self.folder}"

    def emptied_database(self) -> str:
        """Empty the server's one database and return its URL; making a new one would copy 7 MB each time."""
        self.execute("DROP SCHEMA IF EXISTS public CASCADE")
        self.execute("CREATE SCHEMA public")
        return self.url("postgres")

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run a statement outside any transaction."""
        connection = psycopg2.connect(host=str(self.folder), user=_SERVER_USER, dbname=database)
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(statement)
        finally:
            connection.close()

    def stop(self) -> None:
        """End the server at once, with nothing saved, and remove the cluster."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.communicate()
        shutil.rmtree(self.folder)


def _binaries() -> Path:
    found = sorted(_INSTALLATIONS.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    assert found, "PostgreSQL is not installed, and the store is tested on it: apt-get install postgresql"
    return found[-1].parent


def _account() -> tuple[int, int] | None:
    """The account to serve as: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(_SERVER_USER)
    return entry.pw_uid, entry.pw_gid


def _identity(account: tuple[int, int] | None) -> dict[str, object]:
    return {} if account is None else {"user": account[0], "group": account[1], "extra_groups": []}


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
