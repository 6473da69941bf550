"""A workload asks its allocator for what it measures and for nothing else: no table, no thread, no line of output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workload_runs import Finished, compile_shared, run

PRELOADS = Path(__file__).parent / "preloads"


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """libc's allocator with a count of requests."""
    return compile_shared(PRELOADS / "counting.c", tmp_path_factory.mktemp("preload") / "counting.so", "-fno-builtin")


def requests_of(library: Path, name: str, *arguments: str) -> tuple[int, Finished]:
    """Return how many blocks the whole process asked for, and the run."""
    reader, writer = os.pipe()
    done = run(name, *arguments, preload=[library], extra={"CALLS_FD": str(writer)}, pass_fds=[writer])
    os.close(writer)
    with os.fdopen(reader, encoding="ascii") as count:
        text = count.read()
    assert done.code == 0, done.errors
    return int(text), done


def test_startup_asks_for_nothing(counting: Path) -> None:
    assert requests_of(counting, "startup")[0] == 0


MORE = [
    ("aging", ("--generations", "4", "--threads", "2", "--replaced"), (100, 300), 4 * 2 * 200),
    ("classes", ("--iterations",), (1000, 3000), 2000),
    ("churn_bare", ("--check", "no", "--slots", "1", "--iterations"), (1000, 3000), 3000),
    ("exchange", ("--threads", "2", "--iterations"), (1000, 3000), 4000),
    ("free_only", ("--producers", "2", "--live", "50", "--rounds", "3", "--replaced"), (100, 300), 2 * 3 * 200),
    ("heaps", ("--blocks", "3", "--heaps"), (10, 30), 60),
    ("park", ("--blocks", "8", "--kept", "4", "--wakeups"), (100, 300), 200 * 9),
    ("realloc", ("--slots", "1", "--iterations"), (1000, 3000), 2000),
    ("remote", ("--producers", "2", "--consumers", "2", "--blocks"), (1000, 3000), 2000),
    ("teardown", ("--live", "5", "--blocks", "7", "--rounds"), (2, 6), 4 * 5 * 7),
]


@pytest.mark.parametrize("name,arguments,steps,requests", MORE, ids=[case[0] for case in MORE])
def test_every_request_is_one_that_is_measured(
    name: str, arguments: tuple[str, ...], steps: tuple[int, int], requests: int, counting: Path
) -> None:
    few, _ = requests_of(counting, name, *arguments, str(steps[0]))
    more, _ = requests_of(counting, name, *arguments, str(steps[1]))
    assert more - few == requests


def test_operations_are_what_was_asked_for(counting: Path) -> None:
    count, done = requests_of(counting, "server", "--requests", "30", "--rounds", "3")
    idle_count, idle = requests_of(counting, "server", "--requests", "1", "--rounds", "1")
    assert count - idle_count == done.end["operations"] - idle.end["operations"]
