"""Puts a finished site in its place.

Who calls it: site.py. Not for two builders of the same folder at once: the later one wins.

Invariants
1. A reader sees the old site or the new one, never a mixture with pages that no longer exist.
2. A folder that holds anything but a site of ours is refused, not emptied.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dashboards.errors import DashboardError

MARKER = ".tidemark-dashboard"
"""The file that says a folder may be replaced."""


def publish(pages: Mapping[str, str], out_dir: Path) -> Path:
    """Write the pages (file name to text) as the folder `out_dir`, in place of an older site.

    Raises DashboardError if the folder is not a site of ours or can't be written.
    """
    out_dir = out_dir.absolute()
    if out_dir.exists() and not out_dir.is_dir():
        raise DashboardError(f"{out_dir} is a file; name a folder for the dashboard.")
    if out_dir.is_dir() and any(out_dir.iterdir()) and not (out_dir / MARKER).exists():
        raise DashboardError(f"The folder {out_dir} holds other files; name an empty or a new one for the dashboard.")
    try:
        out_dir.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{out_dir.name}.", dir=out_dir.parent))
        try:
            for name, text in pages.items():
                (staging / name).write_text(text, encoding="utf-8")
            (staging / MARKER).write_text("Built by Tidemark; replaced as a whole by the next build.\n")
            os.chmod(staging, 0o755)
            _swap(staging, out_dir)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise DashboardError(
            f"The dashboard can't be written to {out_dir} ({error.strerror or error}); name another folder."
        ) from error
    return out_dir


def _swap(staging: Path, out_dir: Path) -> None:
    """Rename the old site away and the new one in; the old one is back if that fails."""
    if not out_dir.exists():
        staging.rename(out_dir)
        return
    retired = Path(tempfile.mkdtemp(prefix=f".{out_dir.name}.", dir=out_dir.parent))
    out_dir.rename(retired / "old")
    try:
        staging.rename(out_dir)
    except OSError:
        (retired / "old").rename(out_dir)
        raise
    finally:
        shutil.rmtree(retired, ignore_errors=True)
