"""The census of the fast paths: malloc and free of libebb.so, instruction by instruction, for g++ and clang++.

Golden texts stand in golden/<compiler>.txt. They change when the compiler or the code of heap/alloc.h changes. To
renew them, run

    EBB_RENEW_CENSUS=1 /usr/bin/python3 -m pytest tests/allocator/census

look at the difference, and explain each instruction of it in the commit. The counts may never exceed MOST.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from disassembly import fast_path
from library_builds import build_with, build_with_one_more_instruction, release_library

GOLDEN = Path(__file__).resolve().parent / "golden"
MOST = {"malloc": 13, "free": 18}
"""Instructions from the entry to the return, both included: what a prototype of the layout needed."""
LIBRARIES = {"g++": release_library, "clang++-14": lambda: build_with("clang++-14")}


def census(library: Path) -> str:
    """Return the fast paths of a library as text."""
    parts = []
    for symbol in MOST:
        path = fast_path(library, symbol)
        parts.append(f"{symbol}: {len(path)} instructions\n" + "".join(f"    {line}\n" for line in path))
    return "\n".join(parts)


@pytest.fixture(scope="module", params=LIBRARIES)
def compiler(request: pytest.FixtureRequest) -> str:
    """Each compiler in turn."""
    return str(request.param)


@pytest.fixture(scope="module")
def library(compiler: str) -> Path:
    """The library as the compiler makes it."""
    return LIBRARIES[compiler]()


@pytest.mark.parametrize("symbol", MOST)
def test_the_fast_path_is_no_longer_than_the_floor(library: Path, symbol: str) -> None:
    path = fast_path(library, symbol)
    assert len(path) <= MOST[symbol], "\n".join(path)


def test_the_fast_paths_are_the_golden_ones(library: Path, compiler: str) -> None:
    found = census(library)
    golden = GOLDEN / f"{compiler}.txt"
    if os.environ.get("EBB_RENEW_CENSUS") == "1":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    assert golden.is_file(), f"{golden} is missing: EBB_RENEW_CENSUS=1 writes it"
    assert found == golden.read_text(encoding="utf-8"), "the fast paths have changed; see this file's top"


@pytest.mark.parametrize("symbol", ("malloc", "free"))
def test_both_names_of_a_function_are_one(library: Path, symbol: str) -> None:
    assert fast_path(library, symbol) == fast_path(library, f"ebb_{symbol}")


def test_one_more_instruction_is_seen(tmp_path: Path) -> None:
    planted = build_with_one_more_instruction(tmp_path)
    for symbol in MOST:
        was, now = fast_path(release_library(), symbol), fast_path(planted, symbol)
        assert len(now) == len(was) + 1, f"{symbol}: {now}"
        assert "nop" in now
    assert census(planted) != census(release_library())
