"""Which allocator is active, and which of its calls a workload really uses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tiny_arguments import TINY
from workload_runs import REFERENCES, compile_shared, reference_library, run, run_tiny, scudo_library

PRELOADS = Path(__file__).parent / "preloads"
HEAPS = {"jemalloc": "native", "mimalloc": "native", "tcmalloc": "emulated", "tbbmalloc": "emulated"}


def test_heaps_that_cannot_be_deleted_do_not_count_where_blocks_survive() -> None:
    assert run_tiny("survivors", preload=[reference_library("jemalloc")]).start["modes"]["heap"] == "emulated"
    assert run_tiny("survivors", preload=[reference_library("mimalloc")]).start["modes"]["heap"] == "native"


def test_glibc_collects_by_trimming_and_has_no_heaps() -> None:
    start = run_tiny("fork_parked").start
    assert start["adapter"] == "glibc"
    assert start["modes"] == {"heap": "unused", "collect": "native", "park": "emulated"}
    assert run_tiny("teardown").start["modes"] == {"heap": "emulated", "collect": "unused", "park": "unused"}


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_references(name: str) -> None:
    library = reference_library(name)
    start = run_tiny("teardown", preload=[library]).start
    assert start["adapter"] == name
    assert Path(start["malloc_object"]).resolve() == library.resolve()
    assert start["modes"]["heap"] == HEAPS[name]
    assert run_tiny("fork_parked", preload=[library]).start["modes"]["collect"] == "native"


def test_scudo() -> None:
    start = run_tiny("fork_parked", preload=[scudo_library()]).start
    assert start["adapter"] == "scudo"
    assert start["modes"]["collect"] == "native"


@pytest.mark.parametrize("first,second", [("jemalloc", "mimalloc"), ("mimalloc", "jemalloc")])
def test_only_the_active_allocator_is_asked(first: str, second: str) -> None:
    start = run_tiny("heaps", preload=[reference_library(first), reference_library(second)]).start
    assert start["adapter"] == first


def test_symbols_of_another_object_do_not_count(tmp_path: Path) -> None:
    stray = tmp_path / "stray.c"
    source = 'const char* ebb_version(void) { return ""; }\nvoid* mi_heap_new(void) { return 0; }\n'
    stray.write_text(source, encoding="utf-8")
    start = run_tiny("teardown", preload=[compile_shared(stray, tmp_path / "stray.so")]).start
    assert start["adapter"] == "glibc"
    assert start["modes"]["heap"] == "emulated"


def ebb_calls(tmp_path: Path, name: str, *arguments: str) -> tuple[dict[str, object], list[int]]:
    """Run a workload under the stand-in for Ebb; return its start event and the calls that reached the stand-in."""
    library = compile_shared(PRELOADS / "embedder.c", tmp_path / "embedder.so", "-fno-builtin")
    reader, writer = os.pipe()
    done = run(name, *TINY[name], *arguments, preload=[library], extra={"CALLS_FD": str(writer)}, pass_fds=[writer])
    os.close(writer)
    with os.fdopen(reader, encoding="ascii") as calls:
        counts = [int(word) for word in calls.read().split()]
    assert done.code == 0, done.errors
    return done.start, counts


def test_teardown_uses_ebb_heaps(tmp_path: Path) -> None:
    start, (made, destroyed, *_rest) = ebb_calls(tmp_path, "teardown")
    assert start["adapter"] == "ebb"
    assert start["modes"] == {"heap": "native", "collect": "unused", "park": "unused"}
    assert made == destroyed == 20 * 3


def test_survivors_deletes_ebb_heaps(tmp_path: Path) -> None:
    start, (made, destroyed, _collects, _parks, _unparks, deleted) = ebb_calls(tmp_path, "survivors")
    assert start["modes"] == {"heap": "native", "collect": "unused", "park": "unused"}
    assert made == deleted == 10 * 4 and destroyed == 0


def test_park_brackets_every_wait(tmp_path: Path) -> None:
    start, (_made, _destroyed, _collects, parks, unparks, _deleted) = ebb_calls(tmp_path, "park")
    assert start["modes"] == {"heap": "unused", "collect": "unused", "park": "native"}
    assert parks == unparks == 60


def test_unparked_makes_no_park_call(tmp_path: Path) -> None:
    start, counts = ebb_calls(tmp_path, "park", "--park", "no")
    assert start["modes"] == {"heap": "unused", "collect": "unused", "park": "unused"}
    assert counts == [0, 0, 0, 0, 0, 0]


def test_hand_overs_are_counted_as_the_allocator_reports_them(tmp_path: Path) -> None:
    library = compile_shared(PRELOADS / "embedder.c", tmp_path / "embedder.so", "-fno-builtin")
    assert run_tiny("park", preload=[library]).end["metrics"]["parks_handed_over"] == 30
    assert run_tiny("park").end["metrics"]["parks_handed_over"] == 0
