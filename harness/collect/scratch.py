"""The temporary files of a session: one folder a job in the build tree, and one where an app's TMPDIR lies.

Owned by `harness.collect.session`; used from its worker threads, each for its own job. What a measurement leaves
behind goes with its job, whether the workload ended, crashed or was killed: nothing here trusts it to tidy up.

Invariants:
1. When a session has ended, nothing of it is left.
2. A session that was killed leaves its files to the next one here, which removes what has no owner. An owner holds
   a lock on the folder's `owner` file, which the kernel drops however the owner dies.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from harness.model.errors import CannotMeasure

_OWNER = "owner"
_PREFIX = "tidemark-"


class Scratch:
    """The folders of one session; `open` them before use and `close` them."""

    def __init__(self, home: Path, run_id: str) -> None:
        """`home` holds the folders of all sessions of a checkout."""
        self._home = home
        self._folder = home / run_id
        self._temporary: Path | None = None
        self._lock = -1

    def open(self) -> list[str]:
        """Remove what killed sessions left, make this session's folders, and return the ids of the killed ones' runs.

        CannotMeasure when the same run still goes on elsewhere; OSError passes through.
        """
        dead = sweep(self._home)
        owner = self._folder / _OWNER
        if owner.exists():
            raise CannotMeasure(
                f"Run {self._folder.name[:12]} still goes on in another process: wait for its end, or stop it first."
            )
        self._folder.mkdir(parents=True, exist_ok=True)
        self._temporary = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Locked before it has its name: nobody may find it without an owner.
        unnamed = self._folder / f"{_OWNER}.{os.getpid()}"
        self._lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.write(self._lock, str(self._temporary).encode())
        os.rename(unnamed, owner)
        return dead

    def job(self, position: int) -> Path:
        """Return the folder of a job, made."""
        folder = self._folder / str(position)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def temporary(self, position: int) -> Path:
        """Return a folder for the job's own temporary files, made.

        Its path has one length for every job and checkout: programs copy it about, and counts would show that.
        """
        assert self._temporary is not None
        folder = self._temporary / f"{position:06d}"
        folder.mkdir(exist_ok=True)
        return folder

    def forget(self, position: int) -> None:
        """Remove both folders of a job with all that is in them."""
        shutil.rmtree(self._folder / str(position), ignore_errors=True)
        if self._temporary is not None:
            shutil.rmtree(self._temporary / f"{position:06d}", ignore_errors=True)

    def close(self) -> None:
        """Remove everything and give up the lock. Safe to call in any state."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sweep(home: Path) -> list[str]:
    """Remove the folders below `home` whose session is gone, with the temporary files that they name.

    Returns the names of the folders, which are the ids of the runs.
    """
    dead = []
    for owner in home.glob(f"*/{_OWNER}"):
        try:
            lock = os.open(owner, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            named = Path(os.read(lock, 4096).decode(errors="replace"))
            if named.is_absolute() and named.name.startswith(_PREFIX):
                shutil.rmtree(named, ignore_errors=True)
            shutil.rmtree(owner.parent, ignore_errors=True)
            dead.append(owner.parent.name)
        except BlockingIOError:
            continue  # its session still runs
        finally:
            os.close(lock)
    return dead
