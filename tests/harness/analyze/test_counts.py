"""Counts: exact ones to the instruction, noisy ones by threshold and rank test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analyze.comparison import outcome_words
from harness.analyze.counts import Noise, can_still_move, judge_exact, judge_noisy, noise_of
from harness.analyze.verdict import Outcome, Threshold

LIMIT = Threshold(0.05, "%", "test")


def test_one_instruction_an_operation_is_a_regression() -> None:
    verdict = judge_exact([40_000_000.0], [40_200_000.0], LIMIT, "instructions")
    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.figure == pytest.approx(0.5)
    assert "+200,000 instructions" in verdict.reason


def test_below_the_limit_the_difference_is_still_told() -> None:
    verdict = judge_exact([40_000_000.0], [40_000_001.0], LIMIT, "instructions")
    assert verdict.outcome is Outcome.UNCHANGED
    assert verdict.reason == "+1 instructions"


def test_fewer_instructions_are_an_improvement() -> None:
    assert judge_exact([100_000.0], [99_000.0], LIMIT, "instructions").outcome is Outcome.IMPROVED


def test_a_count_that_does_not_repeat_is_not_judged_exactly() -> None:
    verdict = judge_exact([100_000.0, 100_400.0], [101_000.0, 101_000.0], LIMIT, "instructions")
    assert verdict.outcome is Outcome.CANNOT_TELL
    assert "not exact" in verdict.reason


def test_no_samples_is_not_enough_data() -> None:
    assert judge_exact([], [1.0], LIMIT, "instructions").outcome is Outcome.CANNOT_TELL
    assert judge_noisy([], [1.0], noise_of([]), "s").outcome is Outcome.CANNOT_TELL


def test_four_against_four_is_not_enough_data() -> None:
    verdict = judge_noisy([1.0] * 4, [2.0] * 4, noise_of([1.0] * 10), "s")
    assert verdict.outcome is Outcome.CANNOT_TELL
    assert "0.029" in verdict.reason


def test_separated_beyond_the_threshold_regresses() -> None:
    history = [100.0, 100.1, 99.9, 100.05, 99.95, 100.0, 100.1, 99.9]
    verdict = judge_noisy([100, 100.1, 99.9, 100, 100.2], [102, 102.1, 101.9, 102, 102.2], noise_of(history), "s")
    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.figure == pytest.approx(2.0)
    assert verdict.interval is not None and verdict.interval[0] > 1.5


def test_separated_within_the_noise_is_unchanged() -> None:
    history = [100.0, 103.0, 98.0, 104.0, 99.0, 102.0, 97.0, 101.0]
    verdict = judge_noisy([100, 100.1, 99.9, 100, 100.2], [101, 101.1, 100.9, 101, 101.2], noise_of(history), "s")
    assert verdict.outcome is Outcome.UNCHANGED
    assert outcome_words(verdict).startswith("unchanged: less than ") and outcome_words(verdict).endswith("noise here")


def test_one_overlapping_pair_acquits() -> None:
    verdict = judge_noisy([100, 100, 100, 100, 109], [110, 110, 110, 110, 108], noise_of([100.0] * 8), "s")
    assert verdict.outcome is Outcome.UNCHANGED


def test_reviewed_limit_above_the_noise_holds() -> None:
    limit = Threshold(5.0, "%", "thresholds.toml")
    verdict = judge_noisy([100.0] * 5, [103.0] * 5, noise_of([100.0] * 8), "s", limit)
    assert verdict.outcome is Outcome.UNCHANGED
    assert verdict.threshold == limit
    assert outcome_words(verdict) == "unchanged (threshold 5.000 %)"


def test_noise_names_the_term_that_decided() -> None:
    assert noise_of([100.0] * 10).threshold.origin == "floor"
    wide = noise_of([100.0, 101.0, 99.0, 101.5, 98.5, 100.0, 101.0])
    assert "Q3 + 3 IQR" in wide.threshold.origin or "sigma" in wide.threshold.origin
    assert wide.threshold.value > 1.0


def test_a_step_of_the_history_is_not_taken_for_noise() -> None:
    rng = np.random.default_rng(3)
    quiet = 1000 + rng.normal(0, 0.5, 40)
    stepped = quiet + np.where(np.arange(40) >= 20, 100.0, 0.0)
    assert noise_of(list(stepped)).threshold.value == pytest.approx(noise_of(list(quiet)).threshold.value, rel=0.25)


@given(st.lists(st.floats(1.0, 1e6), min_size=2, max_size=20), st.floats(0.001, 1000.0))
def test_noise_is_relative(history: list[float], scale: float) -> None:
    plain, scaled = noise_of(history), noise_of([value * scale for value in history])
    assert scaled.threshold.value == pytest.approx(plain.threshold.value, rel=1e-6)


@given(
    st.lists(st.floats(90.0, 110.0), min_size=5, max_size=5), st.lists(st.floats(90.0, 110.0), min_size=5, max_size=5)
)
def test_stopping_early_never_contradicts_the_full_verdict(before: list[float], after: list[float]) -> None:
    noise = Noise(0.0, 0.0, 0.0, 10)
    full = judge_noisy(before, after, noise, "s")
    stopped_early = any(not can_still_move(before[:k], after[:k]) for k in range(1, 6))
    if stopped_early:
        assert full.outcome is Outcome.UNCHANGED
