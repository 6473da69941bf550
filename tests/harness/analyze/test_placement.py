"""Code that callgrind counts but does not place: found by its names, moved whole, left alone where nothing tells."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from harness.analyze.placement import place
from harness.collect.callgrind_profile import Profile, parse

LIBRARY = """
__attribute__((noinline)) int near(int n) { return n * 3; }
__attribute__((noinline, section("apart"))) int far_away(int n) {
    for (int i = 0; i < 100; i++) __asm__ volatile("" : "+r"(n));
    return near(n);
}
"""
PROGRAM = "int far_away(int); int main(void) { return far_away(0); }"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("placement")
    (folder / "library.c").write_text(LIBRARY)
    (folder / "program.c").write_text(PROGRAM)
    for command in (
        ["gcc", "-O1", "-g", "-fPIC", "-shared", "-o", "libapart.so", "library.c"],
        ["gcc", "-O1", "-o", "program", "program.c", "./libapart.so"],
        ["valgrind", "--tool=callgrind", "--quiet", "--dump-instr=yes", "--callgrind-out-file=profile", "./program"],
    ):
        subprocess.run(command, cwd=folder, check=True)
    return folder / "libapart.so"


@pytest.fixture
def profile(library: Path) -> Profile:
    return parse((library.parent / "profile").read_bytes())


def test_a_function_outside_text_is_found_with_its_lines(library: Path, profile: Profile) -> None:
    placed = place(profile, library)
    (function,) = (function for function in placed.functions if function.name == "far_away")
    assert Path(function.object).name == "libapart.so"
    lines = {line.line for line in placed.lines if line.function == function and line.file.endswith("library.c")}
    assert {4, 5} <= lines
    (call,) = (call for call in placed.calls if call.callee.name == "near")
    assert call.caller == function
    start = next(address for (path, address), cost in placed.addresses.items() if path == str(library) and cost == 1)
    assert start < 1 << 20, "addresses are relative to the object, as objdump's are"


def test_nothing_is_added_or_lost(library: Path, profile: Profile) -> None:
    placed = place(profile, library)
    for name in ("functions", "lines", "addresses", "calls", "inclusive"):
        assert sum(getattr(placed, name).values()) == sum(getattr(profile, name).values()), name

    def costs(of: Profile) -> Counter[str]:
        return of.by_name()

    assert costs(placed) == costs(profile)


def test_code_of_another_object_stays_unplaced(library: Path, profile: Profile, tmp_path: Path) -> None:
    other = tmp_path / "libother.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-o", str(other), "-"], input=b"int other;", check=True)
    assert place(profile, other) is profile


def test_an_exported_name_is_enough(library: Path, profile: Profile, tmp_path: Path) -> None:
    stripped = tmp_path / "libapart.so"
    shutil.copy(library, stripped)
    subprocess.run(["strip", str(stripped)], check=True)
    placed = place(profile, stripped)
    assert [function.object for function in placed.functions if function.name == "far_away"] == [str(stripped)]
