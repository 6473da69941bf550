"""The search for the first bad commit, with commits that cannot be judged in between."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analyze.bisection import State, first_bad


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[str], int, frozenset[int]]:
    count = draw(st.integers(1, 60))
    bad_from = draw(st.integers(0, count - 1))
    broken = draw(st.frozensets(st.integers(0, count - 1)))
    return [f"c{index}" for index in range(count)], bad_from, broken - {count - 1}


@given(histories())
def test_the_first_bad_commit_is_found_or_among_the_suspects(history: tuple[list[str], int, frozenset[int]]) -> None:
    commits, bad_from, broken = history
    calls: list[str] = []

    def judge(commit: str) -> State:
        index = commits.index(commit)
        calls.append(commit)
        return "skip" if index in broken else "bad" if index >= bad_from else "good"

    found = first_bad(commits, judge)
    truth = commits[bad_from]
    assert truth == found.first_bad or truth in found.suspects
    assert len(calls) == len(set(calls))
    assert len(calls) <= math.ceil(math.log2(len(commits) + 1)) + 2 * len(broken) + 1
    if not broken:
        assert found.first_bad == truth and found.suspects == ()


def test_suspects_are_the_commits_that_could_not_be_judged() -> None:
    states: dict[str, State] = {"a": "good", "b": "skip", "c": "skip", "d": "bad", "e": "bad"}
    found = first_bad(list("abcde"), states.__getitem__)
    assert (found.first_bad, found.suspects) == ("d", ("b", "c"))


def test_no_commits_are_refused() -> None:
    with pytest.raises(ValueError, match="no commits"):
        first_bad([], lambda commit: "good")
