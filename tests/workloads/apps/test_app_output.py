"""Each application runs right under the libc, two reference allocators and Ebb."""

from __future__ import annotations

from pathlib import Path

import pytest

from app_runs import APP_NAMES, LIVING, Invocation, preload_path, run_driver, stand_in


@pytest.fixture(scope="module")
def libc_checksums() -> dict[str, object]:
    """The checksum of each app's output under the libc's own allocator."""
    return {app: run_driver(Invocation(app)).events[-1]["checksum"] for app in APP_NAMES}


@pytest.mark.parametrize("allocator", ["glibc", "jemalloc", "mimalloc", "ebb"])
@pytest.mark.parametrize("app", APP_NAMES)
def test_runs_right_under(app: str, allocator: str, libc_checksums: dict[str, object]) -> None:
    preload = preload_path(allocator)
    outcome = run_driver(Invocation(app, preload))
    assert outcome.status == 0, outcome.complaint
    start, *checkpoints, end = outcome.events
    assert (start["event"], start["protocol"], start["workload"]) == ("start", 1, app)
    served_by = Path(str(start["malloc_object"]))
    if preload:
        assert served_by.resolve() == Path(preload).resolve()
    else:
        assert served_by.name == "libc.so.6"
    assert (int(str(start["pid"])) > 0) == (app in LIVING)
    assert [event["checkpoint"] for event in checkpoints] == list(range(len(checkpoints)))
    assert end["event"] == "end"
    assert end["checksum"] == libc_checksums[app]


@pytest.mark.parametrize("app", APP_NAMES)
def test_reports_what_the_program_used(app: str) -> None:
    outcome = run_driver(Invocation(app))
    metrics = outcome.events[-1]["metrics"]
    assert isinstance(metrics, dict)
    assert set(metrics) == {"wall_s", "user_s", "faults_minor", "peak_rss_bytes"}
    assert metrics["wall_s"] > 0 and metrics["faults_minor"] > 0
    # Far less than a Python with its modules, whose peak a child inherits through exec, for git and lua.
    assert 1 << 20 < metrics["peak_rss_bytes"] < (200 << 20 if app == "gpp" else 64 << 20)


@pytest.mark.parametrize("app", ["git", "lua"])
def test_peak_is_the_programs_and_not_the_drivers(app: str, tmp_path: Path) -> None:
    """A driver of 200 MB must not raise the peak it reports for its child."""
    bloat = tmp_path / "sitecustomize.py"
    bloat.write_text("ballast = bytearray(b'x') * (200 << 20)\n")
    outcome = run_driver(Invocation(app, extra={"PYTHONPATH": str(tmp_path)}))
    assert outcome.status == 0, outcome.complaint
    metrics = outcome.events[-1]["metrics"]
    assert isinstance(metrics, dict)
    assert metrics["peak_rss_bytes"] < 32 << 20


def test_gpp_reports_the_compiler_proper() -> None:
    outcome = run_driver(Invocation("gpp"))
    compiled = outcome.events[1]["metrics"]
    assert isinstance(compiled, dict)
    assert compiled["cc1plus_peak_rss_bytes"] > compiled["as_peak_rss_bytes"]
    assert compiled["cc1plus_peak_rss_bytes"] == outcome.events[-1]["metrics"]["peak_rss_bytes"]  # type: ignore[index]


def test_wrap_prefixes_the_program_alone(tmp_path: Path) -> None:
    """A wrapper sees the program and its allocator, and the run stays right."""
    record = tmp_path / "wrapped"
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f'#!/bin/sh\necho "$1 $LD_PRELOAD" >> {record}\nexec "$@"\n')
    wrapper.chmod(0o755)
    preload = preload_path("jemalloc")
    outcome = run_driver(Invocation("lua", preload, extra={"TIDEMARK_WRAP": str(wrapper)}))
    assert outcome.status == 0, outcome.complaint
    assert record.read_text() == f"/usr/bin/lua5.4 {Path(preload).resolve()}\n"


def test_wrap_goes_to_what_gpp_runs(tmp_path: Path) -> None:
    record = tmp_path / "wrapped"
    wrapper = stand_in(tmp_path / "wrapper", f'basename "$1" >> {record}\nexec "$@"')
    outcome = run_driver(Invocation("gpp", extra={"TIDEMARK_WRAP": wrapper}))
    assert outcome.status == 0, outcome.complaint
    assert record.read_text().split() == ["cc1plus", "as", "collect2"]


def test_tunables_reach_the_program_and_nothing_else_does(tmp_path: Path) -> None:
    record = tmp_path / "environment"
    program = stand_in(tmp_path / "lua", f'env > {record}\nexec /usr/bin/lua5.4 "$@"')
    invocation = Invocation("lua", programs={"LUA5_4": program}, extra={"STRAY": "1"})
    outcome = run_driver(invocation)
    assert outcome.status == 0, outcome.complaint
    names = {line.partition("=")[0] for line in record.read_text().splitlines()}
    assert f"TIDEMARK_TEST_TAG={invocation.tag}" in record.read_text().splitlines()
    # PWD, SHLVL and _ are the stand-in shell's own.
    assert names - {"PWD", "SHLVL", "_"} == {"HOME", "LC_ALL", "PATH", "TMPDIR", "TZ", "TIDEMARK_TEST_TAG"}
