"""Exact instruction counts of a malloc and a free, slow paths included: they may shrink, not grow.

Counted by callgrind over the region of interest of the workload `churn_bare`, less what its loop costs (`churn_loop`,
the same program over an allocator that does nothing). One thread and a fixed seed: the count repeats to the
instruction for a build, whatever the machine. When a change makes it smaller, lower MOST; when one has to make it
larger, the commit says why.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from library_builds import REPOSITORY, release_folder, release_library

PAIRS = 200_000
MOST = {"default": 29.3, "small": 28.4}
"""Instructions a pair of malloc and free, measured with g++ 12 and rounded up to a tenth."""
TOLERANCE = 0.2
"""For what other versions of the compiler and of libc make of the same source. An instruction more in malloc or in
free is 1.0."""
ARGUMENTS = {"default": (), "small": ("--size-range", "112")}
MOST_OF_AN_OPERATION = {
    "churn_sizes:medium": 118.5, "churn_sizes:large": 766.0, "churn_sizes:huge": 783.0, "aligned:default": 196.7,
    "aligned:wide": 557.0, "realloc:vector": 105.0, "realloc:doubling": 18_600.0,
}  # fmt: skip
"""Instructions an operation of a workload, its own loop included: rows of the speed table."""
SHARE = 0.01
"""For other compilers, and for what moves when memory was given back in time during the slow run under callgrind."""


def count(program: str, arguments: tuple[str, ...], preload: Path | None) -> int:
    """Return the instructions in the region of interest of a churn without checks."""
    return run_counted(program, ("--check", "no", "--iterations", str(PAIRS), *arguments), preload)[0]


def run_counted(program: str, arguments: tuple[str, ...], preload: Path | None) -> tuple[int, int]:
    """Return the instructions in the region of interest of a workload, and the operations it did there."""
    binary = release_folder() / "workloads" / program
    assert binary.is_file(), f"{binary} is missing: run `make` first"
    command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--callgrind-out-file=/dev/null", str(binary),
               *arguments]  # fmt: skip
    environment = {"PATH": os.defpath, "LC_ALL": "C"}
    if preload is not None:
        environment["LD_PRELOAD"] = str(preload)
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    collected = re.search(r"Collected : (\d+)", ran.stderr)
    assert collected is not None and int(collected[1]) > 0, f"callgrind collected nothing: {ran.stderr}"
    operations = re.search(r'"operations": (\d+)', ran.stdout)
    assert operations is not None and int(operations[1]) > 0, f"{program} says nothing of what it did: {ran.stdout}"
    return int(collected[1]), int(operations[1])


@pytest.mark.parametrize("variant", MOST)
def test_a_pair_of_malloc_and_free_takes_no_more_instructions(variant: str) -> None:
    whole = count("churn_bare", ARGUMENTS[variant], release_library())
    loop = count("churn_loop", ARGUMENTS[variant], None)
    # The empty malloc and free of churn_loop are a few instructions themselves, which the loop's share takes in.
    pair = (whole - loop) / PAIRS
    print(f"{variant}: {pair:.2f} instructions a pair")
    assert pair <= MOST[variant] + TOLERANCE


@pytest.mark.parametrize("name", MOST_OF_AN_OPERATION)
def test_an_operation_takes_no_more_instructions(name: str) -> None:
    workload, _, variant = name.partition(":")
    manifest = tomllib.loads((REPOSITORY / "workloads" / workload / "workload.toml").read_text())
    arguments = next(tuple(found["counted"]) for found in manifest["variant"] if found["name"] == variant)
    collected, operations = run_counted(workload, arguments, release_library())
    print(f"{name}: {collected / operations:.2f} instructions an operation")
    assert collected / operations <= MOST_OF_AN_OPERATION[name] * (1 + SHARE)


def test_the_count_repeats_to_the_instruction() -> None:
    first, second = (count("churn_bare", ARGUMENTS["small"], release_library()) for _ in range(2))
    assert first == second


def test_a_slower_allocator_is_told_apart() -> None:
    loop = count("churn_loop", ARGUMENTS["small"], None)
    libc = (count("churn_bare", ARGUMENTS["small"], None) - loop) / PAIRS
    assert libc > MOST["small"] + 10 * TOLERANCE, "the libc's allocator needs more than Ebb may"
