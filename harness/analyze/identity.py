"""Says whether two shared objects hold the same code, whatever folder they were built in.

Called by gate and compare. Debug information carries the build folder and the build-id hashes it, so files of one
commit differ from folder to folder though not one instruction does: what counts is the object without them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path


def code_digest(path: Path) -> str:
    """Return the SHA-256 of a shared object without debug information and build-id; without objcopy, of the file."""
    objcopy = shutil.which("objcopy")
    if objcopy is not None:
        with tempfile.TemporaryDirectory() as folder:
            bare = Path(folder) / "bare"
            done = subprocess.run(
                [objcopy, "--strip-all", "--remove-section=.note.gnu.build-id", str(path), str(bare)],
                capture_output=True, env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
            if done.returncode == 0:
                return hashlib.sha256(bare.read_bytes()).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest()
