"""What needs a process of its own: failing `new` without a C++ runtime, with a late one, and under a limit."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from api_programs import compile_program, library, run

MIB = 1024 * 1024


def preloaded(*command: Path) -> subprocess.CompletedProcess[str]:
    """Run `command` with Ebb preloaded."""
    return run(command, variables={"LD_PRELOAD": str(library())})


def test_new_in_a_program_of_c_says_why_it_stops(tmp_path: Path) -> None:
    ended = preloaded(compile_program("host.c", tmp_path / "host"))
    assert ended.stdout == "the nothrow form gives null\n"
    assert ended.returncode == -signal.SIGABRT
    assert "operator new has no memory for 1125899906842624 bytes" in ended.stderr


def test_new_fails_properly_in_a_library_loaded_late(tmp_path: Path) -> None:
    """The C++ runtime is in no scope that Ebb's references were looked up in."""
    host = compile_program("host.c", tmp_path / "host")
    plugin = compile_program("plugin.cc", tmp_path / "plugin.so", "-shared", "-fPIC")
    ended = preloaded(host, plugin)
    assert (ended.returncode, ended.stdout) == (0, "bad_alloc 1, handler 1, null 1\n"), ended.stderr


@pytest.mark.parametrize("linking", ["preload", "shared", "static", "fully static"])
def test_a_handler_that_frees_memory_makes_new_succeed(linking: str, tmp_path: Path) -> None:
    options: dict[str, list[str | Path]] = {
        "preload": [],
        "shared": [library(), f"-Wl,-rpath,{library().parent}"],
        "static": [library("libebb.a"), "-pthread"],
        "fully static": ["-static", library("libebb.a"), "-pthread"],
    }
    program = compile_program("new_handler_frees.cc", tmp_path / "program", *options[linking])
    variables = {"LD_PRELOAD": str(library())} if linking == "preload" else {}
    ended = run(["prlimit", f"--as={700 * MIB}", program], variables=variables)
    assert (ended.returncode, ended.stdout) == (0, "plain 1, nothrow 1, aligned 1, array 1\n"), ended.stderr


def test_a_static_program_has_what_runs_at_load(tmp_path: Path) -> None:
    program = compile_program("static_life.c", tmp_path / "program", "-static", library("libebb.a"), "-pthread")
    ended = run([program])
    assert (ended.returncode, ended.stdout) == (0, "resident after the free: little\nchild ends with 0\n"), ended.stderr
