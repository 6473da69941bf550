"""The files that a rule looks at: what git tracks, or would (new files that no ignore rule names)."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = (".cc", ".h", ".hpp", ".c", ".def", ".py", ".js", ".css", ".html", ".sh", ".pml")
CPP = (".cc", ".h", ".hpp", ".c")


@cache
def tracked() -> tuple[str, ...]:
    """Return the paths, relative to the root and with slashes, of all files that exist."""
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(sorted(path for path in listing.stdout.split("\0") if path and (ROOT / path).is_file()))


def files(*suffixes: str, under: str = "") -> list[str]:
    """Return the tracked files with one of the suffixes in a folder (`allocator/`)."""
    return [path for path in tracked() if path.startswith(under) and path.endswith(suffixes)]


@cache
def text_of(path: str) -> str:
    """Return a file's text; a file that isn't UTF-8 text is given as empty."""
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
