"""The exact rank test against known tables, scipy, and its own invariants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.analyze.ranktest import mann_whitney, shift, smallest_p, wins

finite = st.floats(min_value=-1e9, max_value=1e9, allow_nan=False)
arms = st.lists(finite, min_size=1, max_size=6)


def test_smallest_p_of_small_designs() -> None:
    assert smallest_p(3, 3) == pytest.approx(0.1)
    assert smallest_p(4, 4) == pytest.approx(0.0286, abs=1e-4)
    assert smallest_p(5, 5) == pytest.approx(0.0079, abs=1e-4)


def test_complete_separation_reaches_the_smallest_p() -> None:
    test = mann_whitney([1, 2, 3, 4, 5], [6, 7, 8, 9, 10])
    assert test.u == 25
    assert test.p_two_sided == pytest.approx(2 / 252)
    assert test.p_greater == pytest.approx(1 / 252)


def test_24_of_25_pairs_has_two_chances_in_252() -> None:
    assert mann_whitney([1, 2, 3, 4, 6], [5, 7, 8, 9, 10]).p_greater == pytest.approx(2 / 252)


def test_ties_stay_exact() -> None:
    # Pooled 1 1 1 2: the 2 lies in the second arm in half of the six deals, each with U = 3.
    assert mann_whitney([1, 1], [1, 2]).p_greater == pytest.approx(0.5)
    assert mann_whitney([7] * 5, [7] * 5).p_two_sided == 1.0


@given(st.lists(st.integers(-1000, 1000), min_size=8, max_size=12, unique=True))
def test_agrees_with_scipy_without_ties(values: list[int]) -> None:
    before, after = values[:4], values[4:]
    expected = stats.mannwhitneyu(after, before, alternative="greater", method="exact")
    test = mann_whitney(before, after)
    assert test.u == expected.statistic
    assert test.p_greater == pytest.approx(expected.pvalue)


@given(arms, arms)
def test_wins_of_both_directions_add_up_to_all_pairs(before: list[float], after: list[float]) -> None:
    assert wins(before, after) + wins(after, before) == len(before) * len(after)


@given(arms, arms)
def test_probabilities_are_probabilities(before: list[float], after: list[float]) -> None:
    test = mann_whitney(before, after)
    assert 0 < test.p_greater <= 1
    assert 0 < test.p_two_sided <= 1


@given(arms, arms)
def test_shift_lies_in_its_interval(before: list[float], after: list[float]) -> None:
    moved = shift(before, after)
    assert moved.low <= moved.estimate <= moved.high


def test_shift_interval_of_five_against_five_has_the_tabled_rank() -> None:
    # P(U <= 2) = 4/252, so the third smallest and third largest differences hold 96.8 %.
    before, after = [0.0, 1.0, 2.0, 3.0, 4.0], [10.0, 11.5, 12.25, 13.125, 14.0625]
    differences = sorted(b - a for a in before for b in after)
    moved = shift(before, after)
    assert (moved.low, moved.high) == (differences[2], differences[-3])
    assert moved.level == pytest.approx(1 - 8 / 252)


def test_empty_arm_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        mann_whitney([], [1.0])
