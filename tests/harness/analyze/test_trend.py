"""Slopes and trends against worked values and their invariants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.analyze.robust import sigma_of_steps, successive_differences, theil_sen, without_outliers
from harness.analyze.trend import flattens, kendall


def test_slope_of_a_line_is_exact() -> None:
    line = theil_sen([3.0 + 2.0 * index for index in range(10)])
    assert (line.per_round, line.low, line.high, line.intercept) == (2.0, 2.0, 2.0, 3.0)


def test_one_wild_value_does_not_move_the_slope() -> None:
    series = [2.0 * index for index in range(11)]
    series[5] = 1e9
    assert theil_sen(series).per_round == pytest.approx(2.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=20))
def test_slope_agrees_with_scipy(values: list[float]) -> None:
    assert theil_sen(values).per_round == pytest.approx(stats.theilslopes(values)[0], abs=1e-6)


@given(st.lists(st.integers(0, 1000), min_size=4, max_size=20))
def test_reversing_a_series_reverses_its_trend(values: list[int]) -> None:
    assert kendall(values).s == -kendall(values[::-1]).s


def test_trend_of_a_rise_without_autocorrelation_matches_kendalls_table() -> None:
    # n = 10, S = 45, Var = 125: z = 44 / sqrt(125).
    assert kendall(list(range(10))).z == pytest.approx(44 / 125**0.5)


def test_a_constant_series_has_no_trend() -> None:
    assert kendall([5.0] * 12).z == 0.0


def test_autocorrelation_only_widens() -> None:
    assert kendall([0, 10] * 10).variance_ratio >= 1.0


def test_sigma_ignores_a_step() -> None:
    noise = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    stepped = [value + (1000.0 if index >= 5 else 0.0) for index, value in enumerate(noise)]
    assert sigma_of_steps(successive_differences(stepped)) == pytest.approx(
        sigma_of_steps(successive_differences(noise)), rel=0.05
    )


def test_far_outliers_are_dropped_and_few_values_kept() -> None:
    assert 100.0 not in without_outliers([1, 2, 3, 2, 1, 2, 3, 100.0])
    assert without_outliers([1, 2, 100.0]) == [1, 2, 100.0]


def test_a_warm_up_flattens_and_a_leak_does_not() -> None:
    rng = np.random.default_rng(5)
    rounds = np.arange(12)
    warm_ups = [flattens(list(100 * (1 - np.exp(-rounds / 4)) + rng.normal(0, 2, 12))) for _ in range(200)]
    leaks = [flattens(list(8.0 * rounds + rng.normal(0, 2, 12))) for _ in range(200)]
    assert sum(warm_ups) >= 195
    assert sum(leaks) <= 20


@pytest.mark.parametrize(
    "series",
    [[1.0] * 12, [float(index) for index in range(12)], [float(index**2) for index in range(12)], [1.0, 5.0]],
)
def test_flat_straight_steepening_and_short_series_do_not_flatten(series: list[float]) -> None:
    assert not flattens(series)


def test_a_rise_without_noise_that_flattens_is_seen() -> None:
    assert flattens([1 - 0.6**index for index in range(12)])


@given(st.lists(st.floats(-1e9, 1e9), min_size=0, max_size=20))
def test_flattening_is_asked_of_any_series(series: list[float]) -> None:
    assert flattens(series) in (True, False)
