"""The launcher and the environment of a measured program: what moves a figure though the code did not change."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path

import pytest

from harness.build.launcher import launcher_path
from harness.collect.environment import WORKLOAD_ENVIRONMENT_BYTES, workload_environment
from harness.collect.execution import execute
from harness.collect.launch import prepare


def show_environment(bench, preload=None, checkpoints=True):
    """Return the environment that a program really gets, as (bytes, variables)."""
    job = bench.job(preload=preload)
    context = bench.context()
    launch = prepare(job, bench.layout, context.launcher, counting=True)
    launch = dataclasses.replace(launch, command=("/bin/cat", "/proc/self/environ"))
    execution = execute(launch, context.scratch, context.stop, checkpoints=checkpoints)
    # libc cuts GLIBC_TUNABLES at its colons in place: the one NUL that ends no variable.
    text = execution.output.replace("\0glibc.", ":glibc.")
    return len(text), [word for word in text.split("\0") if word]


def test_the_environment_has_one_size_with_and_without_preload(bench):
    own = bench.layout.release / "libown.so"
    sizes = {
        show_environment(bench)[0],
        show_environment(bench, preload=own)[0],
        show_environment(bench, checkpoints=False)[0],
    }
    assert sizes == {WORKLOAD_ENVIRONMENT_BYTES}


def test_the_environment_holds_nothing_of_the_users(bench, monkeypatch):
    monkeypatch.setenv("SOMETHING_OF_THE_USERS", "1")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    names = {word.partition("=")[0] for word in show_environment(bench)[1]}
    assert names == {
        "GLIBC_TUNABLES", "HOME", "LC_ALL", "LD_PRELOAD", "PATH", "TIDEMARK_CHECKPOINT_FDS", "TIDEMARK_PADDING", "TZ",
    }  # fmt: skip


def test_libc_s_choice_of_code_is_pinned():
    assert "AVX512" in workload_environment(None, {})["GLIBC_TUNABLES"]


def test_counting_runs_at_one_address_and_native_runs_do_not(bench):
    def stack_of(randomize: bool) -> str:
        context = bench.context()
        launch = prepare(bench.job(), bench.layout, context.launcher, counting=False)
        launch = dataclasses.replace(launch, command=("/bin/cat", "/proc/self/maps"), randomize=randomize)
        output = execute(launch, context.scratch, context.stop).output
        return next(line.split()[0] for line in output.splitlines() if "[stack]" in line)

    assert len({stack_of(False) for _ in range(3)}) == 1
    if Path("/proc/sys/kernel/randomize_va_space").read_text().strip() != "0":
        assert len({stack_of(True) for _ in range(3)}) > 1


def test_peak_memory_is_the_program_s_own_and_not_inherited(checkout):
    """`ru_maxrss` is inherited through exec: a child of this Python would read Python's size."""
    ballast = bytearray(64 << 20)
    ballast[:: os.sysconf("SC_PAGE_SIZE")] = b"x" * (len(ballast) // os.sysconf("SC_PAGE_SIZE"))
    read, write = os.pipe()
    command = [str(launcher_path(checkout)), "-r", str(write), "-e", "PATH=/usr/bin:/bin", "--", "true"]
    subprocess.run(command, pass_fds=[write], check=True)
    os.close(write)
    with os.fdopen(read) as pipe:
        usage = json.loads(pipe.read())
    assert 0 < usage["max_rss_bytes"] < 8 << 20


@pytest.mark.parametrize("many", [False, True])
def test_the_program_stays_on_the_processors_it_is_given(bench, many):
    context = bench.context()
    cpus = sorted(os.sched_getaffinity(0))
    wanted = f"{cpus[0]},{cpus[-1]}" if many else str(cpus[-1])
    launch = prepare(bench.job(), bench.layout, context.launcher, counting=True)
    launch = dataclasses.replace(launch, command=("/bin/cat", "/proc/self/status"), cpus=wanted)
    output = execute(launch, context.scratch, context.stop).output
    allowed = next(line.split()[1] for line in output.splitlines() if line.startswith("Cpus_allowed_list"))
    assert set(allowed.replace("-", ",").split(",")) == set(wanted.split(","))


def test_the_launcher_refuses_wrong_use(checkout):
    launcher = str(launcher_path(checkout))
    assert subprocess.run([launcher], check=False).returncode == 125
    for words in (["-x"], ["-c", "0-x", "true"], ["-c", "3-1", "true"], ["-c", "all", "true"]):
        assert subprocess.run([launcher, *words], check=False, stderr=subprocess.DEVNULL).returncode == 125
    assert subprocess.run([launcher, "--", "/nonexistent"], check=False, stderr=subprocess.DEVNULL).returncode == 127


def test_an_app_gets_its_arm_in_variables_and_not_as_preload(bench):
    own = bench.layout.release / "libown.so"
    job = bench.job(preload=own, kind="app", command=("/bin/true",), folder=bench.layout.root)
    config = dataclasses.replace(job.arm.config, environment={"OWN_OPTION": "a b"})
    job = dataclasses.replace(job, arm=dataclasses.replace(job.arm, config=config))
    launch = prepare(job, bench.layout, Path("/launch"), counting=False)
    assert launch.environment["TIDEMARK_PRELOAD"] == str(own)
    assert launch.environment["TIDEMARK_TUNABLES"] == "'OWN_OPTION=a b'"
    assert launch.environment["LD_PRELOAD"] == ""
