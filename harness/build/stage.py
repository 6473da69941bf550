"""Staged copies of the shared objects under measurement.

A copy at `build/stage/<hash>/<name>` is what LD_PRELOAD names: a rebuild in the middle of a run cannot change what is
measured, and the path of every arm has the same length, which start-up counts depend on. Copies are content-addressed
and never rewritten, so concurrent runs share them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from harness.build.commands import run_logged
from harness.model.layout import Layout


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def stage(layout: Layout, artefact: Path) -> tuple[Path, str]:
    """Copy a shared object to its staged place and return (path, SHA-256). A static archive is linked into one."""
    if artefact.suffix == ".a":
        artefact = _link_archive(layout, artefact)
    digest = sha256_of(artefact)
    target = layout.stage / digest[:16] / artefact.name
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent)
        os.close(handle)
        shutil.copyfile(artefact, temporary)
        os.chmod(temporary, 0o755)
        os.rename(temporary, target)
    return target, digest


def _link_archive(layout: Layout, archive: Path) -> Path:
    """Link a static archive into a shared object, so that what ships none can be swapped like the others."""
    folder = layout.build / "linked" / sha256_of(archive)[:16]
    target = folder / f"{archive.stem}.so"
    if not target.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["c++", "-shared", "-o", str(target), "-Wl,--whole-archive", str(archive), "-Wl,--no-whole-archive",
                   "-pthread", "-ldl"]  # fmt: skip
        run_logged(command, folder / "link.log", f"{archive.name} (it must be position-independent)", layout.root)
    return target
