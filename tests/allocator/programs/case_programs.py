"""Compiles the case programs and runs them under the allocator that the tests are about.

That is `libebb.so` of the build directory (TIDEMARK_BUILD, or build/release). For work on the cases
themselves TIDEMARK_CASE_LIBRARY names another shared object, or `none` for the libc's allocator.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
CASES = Path(__file__).resolve().parent / "cases"
COMPILE_TIMEOUT_S = 60
RUN_TIMEOUT_S = 60
FLAGS = ("-O1", "-g", "-Wall", "-Wextra", "-pthread", "-fno-builtin-malloc", "-fno-builtin-calloc")
"""The builtins stay off where they would let the compiler drop an allocation under test."""
MISMATCHED = "-Wno-mismatched-dealloc"
"""For cases that pair functions of C and C++ on purpose."""


def build_directory() -> Path:
    """Return where `make` puts the libraries."""
    return Path(os.environ.get("TIDEMARK_BUILD", REPOSITORY / "build" / "release"))


def library_file(name: str) -> Path:
    """Return a built library; fails the test, with what to do, when there is none."""
    path = build_directory() / name
    assert path.is_file(), f"{path} is missing: run 'make' first, or name a build in TIDEMARK_BUILD"
    return path


def allocator_library() -> str:
    """Return the path of the shared object under test, or nothing for the libc's allocator."""
    chosen = os.environ.get("TIDEMARK_CASE_LIBRARY", "")
    if chosen == "none":
        return ""
    return chosen or str(library_file("libebb.so"))


def is_ebb() -> bool:
    """Say whether the cases run under Ebb, whose options and names some of them use."""
    return "TIDEMARK_CASE_LIBRARY" not in os.environ


def entry_points() -> tuple[str, str]:
    """Return the names of malloc and free that the library under test exports."""
    return ("ebb_malloc", "ebb_free") if is_ebb() else ("malloc", "free")


@dataclass(frozen=True)
class Ended:
    """How a case ended: its status as subprocess gives it, and what it said."""

    status: int
    output: str
    complaint: str


class CaseCompiler:
    """Compiles each case once a session, into a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def program(self, source: str, *extra: str, name: str = "") -> Path:
        """Return the program made of `source` with the further compiler arguments `extra`.

        One source compiled in two ways needs a `name` for the second.
        """
        return self._compile(source, name or Path(source).stem, extra)

    def library(self, source: str, name: str, *extra: str) -> Path:
        """Return the shared library `lib<name>.so` made of `source`."""
        return self._compile(source, f"lib{name}.so", ("-fPIC", "-shared", *extra))

    def _compile(self, source: str, target: str, extra: Sequence[str]) -> Path:
        output = self._directory / target
        if output.exists():
            return output
        compiler = ["g++", "-std=c++17"] if source.endswith(".cc") else ["gcc", "-std=gnu11"]
        command = [*compiler, *FLAGS, str(CASES / source), *extra, "-o", str(output)]
        made = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S)
        assert made.returncode == 0, made.stderr
        assert made.stderr == "", f"the case compiles with warnings: {made.stderr}"
        return output


def run_case(
    program: Path | str,
    *arguments: str,
    preloads: Sequence[str] | None = None,
    variables: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> Ended:
    """Run a program with the allocator preloaded, or with `preloads` where given.

    `prefix` commands run before it and are not under the allocator.
    """
    chosen = [allocator_library()] if preloads is None else list(preloads)
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", **(variables or {})}
    preload = ":".join(path for path in chosen if path)
    command = [*prefix, str(program), *arguments]
    if preload:
        command = [*prefix, "/usr/bin/env", f"LD_PRELOAD={preload}", str(program), *arguments]
    try:
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{' '.join(command)} hangs: it did not end within {RUN_TIMEOUT_S} s") from None
    return Ended(ran.returncode, ran.stdout, ran.stderr)


def expect_success(ended: Ended) -> None:
    """Fail the test with the case's own sentence unless it exited with 0."""
    assert ended.status == 0, f"status {ended.status}: {ended.complaint or ended.output}"
