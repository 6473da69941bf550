"""Where the library under test is, and how the tests of the interface compile and run programs with it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).resolve().parent / "programs"
COMPILE_TIMEOUT_S = 120
RUN_TIMEOUT_S = 60


def build_directory() -> Path:
    """Return where `make` puts the libraries."""
    return Path(os.environ.get("TIDEMARK_BUILD", REPOSITORY / "build" / "release"))


def library(name: str = "libebb.so") -> Path:
    """Return a built library; fails the test, with what to do, when there is none."""
    path = build_directory() / name
    assert path.is_file(), f"{path} is missing: run 'make' first, or name a build in TIDEMARK_BUILD"
    return path


def run(
    command: Sequence[str | Path],
    *,
    variables: Mapping[str, str] | None = None,
    timeout_s: float = RUN_TIMEOUT_S,
    directory: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `command` to its end, whatever its status, and return what it said."""
    environment = {**os.environ, **(variables or {})}
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=timeout_s, env=environment,
        cwd=directory, check=False,
    )


def succeed(
    command: Sequence[str | Path], *, directory: Path | None = None, timeout_s: float = COMPILE_TIMEOUT_S
) -> str:
    """Run `command`, fail the test with its complaint unless it exits with 0, and return its output."""
    ended = run(command, timeout_s=timeout_s, directory=directory)
    assert ended.returncode == 0, f"{' '.join(map(str, command))}:\n{ended.stderr or ended.stdout}"
    return ended.stdout


def compile_program(source: str, output: Path, *extra: str | Path) -> Path:
    """Compile programs/`source` with the further compiler arguments `extra`; return `output`."""
    compiler = "gcc" if source.endswith(".c") else "g++"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror"]
    succeed([compiler, *flags, PROGRAMS / source, "-o", output, *extra])
    return output
