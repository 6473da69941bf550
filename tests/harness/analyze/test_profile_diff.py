"""Differences of profiles: what moved, why, and that the parts add up to the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analyze.profile_diff import Change, Function, SourceView, difference
from harness.analyze.source_lines import Sources, moved_lines
from harness.collect.callgrind_profile import Call, Line, Profile
from harness.collect.callgrind_profile import Function as Recorded


def recorded(name: str, folder: str = "/build/a") -> Recorded:
    return Recorded(f"{folder}/libtest.so", f"{folder}/heap.cc", name)


def profile(
    costs: dict[str, int], calls: dict[tuple[str, str], int] | None = None, folder: str = "/build/a"
) -> Profile:
    made = Profile()
    for index, (name, cost) in enumerate(costs.items(), start=1):
        function = recorded(name, folder)
        made.functions[function] += cost
        made.lines[Line(function, function.file, index)] += cost
        made.total += cost
    for (caller, callee), count in (calls or {}).items():
        made.calls[Call(recorded(caller, folder), recorded(callee, folder))] += count
    return made


def test_one_instruction_more_in_free_is_a_dearer_free() -> None:
    calls = {("main", "free"): 1000}
    found = difference(
        profile({"free": 18_000, "main": 5000}, calls), profile({"free": 19_000, "main": 5000}, calls), (1000, 1000)
    )
    assert found.delta == pytest.approx(1.0)
    (free,) = found.functions
    assert free.function == Function("libtest.so", "free")
    assert free.change is Change.DEARER
    assert (free.by_calls, free.by_cost) == (pytest.approx(0.0), pytest.approx(1.0))


def test_twice_the_calls_are_more_calls() -> None:
    before = profile({"slow": 500}, {("main", "slow"): 10})
    after = profile({"slow": 1000}, {("main", "slow"): 20})
    (slow,) = difference(before, after, (100, 100)).functions
    assert slow.change is Change.MORE_CALLS
    assert (slow.calls_before, slow.calls_after) == (0.1, 0.2)
    assert slow.by_cost == pytest.approx(0.0)


def test_new_and_vanished_functions_are_named() -> None:
    found = difference(profile({"old": 100}), profile({"new": 300}), (100, 100))
    assert {item.function.name: item.change for item in found.functions} == {"new": Change.NEW, "old": Change.VANISHED}


def test_lines_of_what_both_sides_ran_are_the_same_lines() -> None:
    """The workload is one file for both, whatever its sources were at the two commits."""
    before, after = profile({"main": 10}), profile({"main": 10})
    view = SourceView(
        name_before=lambda path: path, name_after=lambda path: path.removeprefix("/build/"),
        moved_line=lambda file, line: line + 7, judged=frozenset({"libebb.so"}),
    )  # fmt: skip
    assert difference(before, after, (1, 1), view).lines == ()


def test_builds_in_different_folders_are_the_same_functions() -> None:
    assert difference(profile({"free": 10}), profile({"free": 10}, folder="/elsewhere/b"), (1, 1)).functions == ()


def test_a_compiler_clone_is_part_of_its_function() -> None:
    before = profile({"refill": 100}, {("malloc", "refill"): 10})
    after = profile({"refill": 60, "refill.part.0": 50}, {("malloc", "refill"): 10, ("refill", "refill.part.0"): 5})
    (refill,) = difference(before, after, (10, 10)).functions
    assert refill.function.name == "refill"
    assert refill.change is Change.DEARER
    assert refill.calls_after == 1.0


def test_different_operation_counts_are_compared_per_operation() -> None:
    assert difference(profile({"free": 1800}), profile({"free": 3600}), (100, 200)).functions == ()


def test_no_operations_are_refused() -> None:
    with pytest.raises(ValueError, match="positive number of operations"):
        difference(profile({}), profile({}), (0, 1))


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 10**9)),
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 10**9)),
    st.integers(1, 10**6),
)
def test_the_parts_add_up_to_the_whole(before: dict[str, int], after: dict[str, int], operations: int) -> None:
    found = difference(profile(before), profile(after), (operations, operations))
    assert found.residual == pytest.approx(0.0, abs=1e-5)
    for item in found.functions:
        assert item.by_calls + item.by_cost == pytest.approx(item.delta)


def line_profile(costs: dict[int, int]) -> Profile:
    made = Profile()
    function = recorded("free")
    for line, cost in costs.items():
        made.lines[Line(function, "heap.cc", line)] += cost
        made.functions[function] += cost
    return made


def test_lines_that_only_moved_are_not_reported() -> None:
    old_text = "a();\nb();\nc();\n"
    new_text = "a();\n// one line more\nb();\nextra();\nc();\n"
    sources = Sources({"heap.cc": old_text}.get, {"heap.cc": new_text}.get)
    view = SourceView(moved_line=sources.moved_line, text_before=sources.text_before, text_after=sources.text_after)
    found = difference(line_profile({1: 10, 2: 20, 3: 30}), line_profile({1: 10, 3: 20, 4: 5, 5: 30}), (10, 10), view)
    (added,) = found.lines
    assert (added.line_before, added.line_after, added.text, added.delta) == (None, 4, "extra();", 0.5)


def test_a_removed_line_shows_its_old_text() -> None:
    sources = Sources({"heap.cc": "keep();\ngone();\n"}.get, {"heap.cc": "keep();\n"}.get)
    view = SourceView(moved_line=sources.moved_line, text_before=sources.text_before, text_after=sources.text_after)
    found = difference(line_profile({1: 10, 2: 20}), line_profile({1: 10}), (10, 10), view)
    (gone,) = found.lines
    assert (gone.line_before, gone.line_after, gone.text, gone.delta) == (2, None, "gone();", -2.0)


@given(st.lists(st.sampled_from(["x", "y", "z", ""]), max_size=30))
def test_unchanged_text_maps_every_line_to_itself(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert moved_lines(text, text) == {number: number for number in range(1, len(text.splitlines()) + 1)}
