"""A broken, missing or wrongly configured program never passes for a valid run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from app_runs import APP_NAMES, DRIVER, LIBRARIES, PYTHON, Invocation, run_driver, stand_in

VARIABLE = {
    "gpp": "GPP",
    "git": "GIT",
    "lua": "LUA5_4",
    "perl": "PERL",
    "python": "PYTHON3",
    "redis": "REDIS_SERVER",
    "sqlite": "SQLITE3",
}
PACKAGE = {
    "gpp": "g++",
    "git": "git",
    "lua": "lua5.4",
    "perl": "perl",
    "python": "python3",
    "redis": "redis-server",
    "sqlite": "sqlite3",
}
PROBED = 'case "$1" in -v|-version|--version|-I) exit 0;; esac'
"""Survives the run that proves the allocator."""
ANSWERS_WRONG = f'{PROBED}\nwhile read -r line; do echo wrong; echo "=== done"; done'
BROKEN = {
    "gpp": (
        'case "$*" in *unit1.cc*) sed -i "s/ \\* 31 / * 32 /" unit1.cc;; esac\nexec /usr/bin/g++ "$@"'
    ),
    "git": 'case "$*" in *rev-parse*) echo 0123456789; exit 0;; esac\nexec /usr/bin/git "$@"',
    "lua": ANSWERS_WRONG,
    "perl": ANSWERS_WRONG,
    "python": ANSWERS_WRONG,
    # A store that drops keys under memory pressure.
    "redis": f'{PROBED}\nexec /usr/bin/redis-server "$@" --maxmemory 1200kb --maxmemory-policy allkeys-random',
    "sqlite": ANSWERS_WRONG,
}
CRASHES = f"{PROBED}\nkill -SEGV $$"


@pytest.mark.parametrize("app", APP_NAMES)
def test_wrong_output_is_found(app: str, tmp_path: Path) -> None:
    program = stand_in(tmp_path / "broken", BROKEN[app])
    outcome = run_driver(Invocation(app, programs={VARIABLE[app]: program}))
    assert outcome.status == 3, outcome.complaint
    assert outcome.complaint.count("\n") == 1
    assert "end" not in [event["event"] for event in outcome.events]


@pytest.mark.parametrize("app", APP_NAMES)
def test_crash_is_reported(app: str, tmp_path: Path) -> None:
    body = CRASHES
    if app == "gpp":
        body = 'case "$1" in -print-prog-name*|--version) exec /usr/bin/g++ "$@";; esac\nkill -SEGV $$'
    program = stand_in(tmp_path / "crashing", body)
    outcome = run_driver(Invocation(app, programs={VARIABLE[app]: program}))
    assert outcome.status == 3, outcome.complaint
    assert "signal 11" in outcome.complaint and outcome.complaint.count("\n") == 1


@pytest.mark.parametrize("app", APP_NAMES)
def test_missing_program_names_its_package(app: str, tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    outcome = run_driver(Invocation(app, programs={VARIABLE[app]: absent}))
    assert outcome.status == 2
    assert outcome.complaint == (
        f"{absent} is missing: run 'apt-get install {PACKAGE[app]}' or set "
        f"TIDEMARK_PROGRAM_{VARIABLE[app]} to the program.\n"
    )
    assert outcome.events == []


def test_missing_load_generator_names_its_package(tmp_path: Path) -> None:
    outcome = run_driver(Invocation("redis", programs={"REDIS_BENCHMARK": str(tmp_path / "absent")}))
    assert outcome.status == 2
    assert "apt-get install redis-tools" in outcome.complaint


def test_preload_that_is_no_file_is_refused(tmp_path: Path) -> None:
    outcome = run_driver(Invocation("lua", preload=str(tmp_path / "libnone.so")))
    assert outcome.status == 2
    assert "names no file" in outcome.complaint


def test_preload_that_serves_no_malloc_is_refused() -> None:
    outcome = run_driver(Invocation("lua", preload=str(LIBRARIES / "libz.so.1")))
    assert outcome.status == 2
    assert "binds malloc to" in outcome.complaint and "libc.so.6" in outcome.complaint


def test_preload_that_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    """The dynamic linker only warns about it and runs the program on the libc."""
    text = tmp_path / "libtext.so"
    text.write_text("not a shared object")
    outcome = run_driver(Invocation("perl", preload=str(text)))
    assert outcome.status == 2
    assert outcome.events == []


@pytest.mark.parametrize("tunables", ["novalue", "=x"])
def test_malformed_tunables_are_refused(tunables: str) -> None:
    outcome = run_driver(Invocation("lua", extra={"TIDEMARK_TUNABLES": tunables}))
    assert outcome.status == 2
    assert "NAME=value" in outcome.complaint


def test_malformed_descriptors_are_refused() -> None:
    outcome = run_driver(Invocation("lua", extra={"TIDEMARK_CHECKPOINT_FDS": "7"}))
    assert outcome.status == 2
    assert "TIDEMARK_CHECKPOINT_FDS" in outcome.complaint


@pytest.mark.parametrize("arguments", [["nosuchapp"], ["lua", "--size", "0"], ["lua", "--rounds", "x"], []])
def test_bad_arguments_exit_with_2(arguments: list[str]) -> None:
    ran = subprocess.run([PYTHON, str(DRIVER), *arguments], capture_output=True, text=True, timeout=30)
    assert ran.returncode == 2
    assert "error" in ran.stderr


def test_port_taken_by_another_is_tried_again(tmp_path: Path) -> None:
    """The first server says what redis says when somebody took its port; the second one runs."""
    seen = tmp_path / "seen"
    complaint = "Warning: Could not create server TCP listening socket 127.0.0.1:1: bind: Address already in use"
    body = f'{PROBED}\nif [ ! -e {seen} ]; then : > {seen}; echo "{complaint}"; exit 1; fi\nexec redis-server "$@"'
    program = stand_in(tmp_path / "late", body)
    outcome = run_driver(Invocation("redis", programs={"REDIS_SERVER": program}))
    assert outcome.status == 0, outcome.complaint
    assert seen.exists()
