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
from pathlib import Path

import pytest

from library_builds import release_folder, release_library

PAIRS = 200_000
MOST = {"default": 29.3, "small": 28.4}
"""Instructions a pair of malloc and free, measured with g++ 12 and rounded up to a tenth."""
TOLERANCE = 0.2
"""For what other versions of the compiler and of libc make of the same source. An instruction more in malloc or in
free is 1.0."""
ARGUMENTS = {"default": (), "small": ("--size-range", "112")}


def count(program: str, arguments: tuple[str, ...], preload: Path | None) -> int:
    """Return the instructions in the region of interest of a workload."""
    binary = release_folder() / "workloads" / program
    assert binary.is_file(), f"{binary} is missing: run `make` first"
    command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--callgrind-out-file=/dev/null", str(binary),
               "--check", "no", "--iterations", str(PAIRS), *arguments]  # fmt: skip
    environment = {"PATH": os.defpath, "LC_ALL": "C"}
    if preload is not None:
        environment["LD_PRELOAD"] = str(preload)
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    collected = re.search(r"Collected : (\d+)", ran.stderr)
    assert collected is not None and int(collected[1]) > 0, f"callgrind collected nothing: {ran.stderr}"
    return int(collected[1])


@pytest.mark.parametrize("variant", MOST)
def test_a_pair_of_malloc_and_free_takes_no_more_instructions(variant: str) -> None:
    whole = count("churn_bare", ARGUMENTS[variant], release_library())
    loop = count("churn_loop", ARGUMENTS[variant], None)
    # The empty malloc and free of churn_loop are a few instructions themselves, which the loop's share takes in.
    pair = (whole - loop) / PAIRS
    print(f"{variant}: {pair:.2f} instructions a pair")
    assert pair <= MOST[variant] + TOLERANCE


def test_the_count_repeats_to_the_instruction() -> None:
    first, second = (count("churn_bare", ARGUMENTS["small"], release_library()) for _ in range(2))
    assert first == second


def test_a_slower_allocator_is_told_apart() -> None:
    loop = count("churn_loop", ARGUMENTS["small"], None)
    libc = (count("churn_bare", ARGUMENTS["small"], None) - loop) / PAIRS
    assert libc > MOST["small"] + 10 * TOLERANCE, "the libc's allocator needs more than Ebb may"
