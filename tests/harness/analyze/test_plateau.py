"""Plateau verdicts on series whose answer is known, and the rates the manual quotes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analyze import simulate
from harness.analyze.plateau import (
    MIB,
    MemoryLimits,
    acquitted,
    can_still_regress,
    judge_one_arm,
    judge_two_arms,
)
from harness.analyze.verdict import Outcome


def arm(source: simulate.MemorySource, seed: int, processes: int = 5) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return [list(source(rng)) for _ in range(processes)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (simulate.flat, Outcome.PLATEAU),
        (simulate.leaking, Outcome.GROWING),
        (simulate.higher, Outcome.HIGHER_PLATEAU),
    ],
)
def test_two_arms_name_what_was_planted(source: simulate.MemorySource, expected: Outcome) -> None:
    verdict = judge_two_arms(arm(simulate.flat, 1), arm(source, 2))
    assert verdict.outcome is expected
    assert verdict.threshold is not None and verdict.threshold.origin


def test_falling_memory_is_a_plateau() -> None:
    assert judge_two_arms(arm(simulate.higher, 1), arm(simulate.flat, 2)).outcome is Outcome.PLATEAU


def test_two_arms_need_five_processes_and_fifteen_rounds() -> None:
    few = judge_two_arms(arm(simulate.flat, 1, 4), arm(simulate.leaking, 2, 5))
    assert few.outcome is Outcome.CANNOT_TELL and "5 processes" in few.reason
    short = judge_two_arms([series[:10] for series in arm(simulate.flat, 1)], arm(simulate.leaking, 2))
    assert short.outcome is Outcome.CANNOT_TELL and "shortest series has 10" in short.reason


def test_small_levels_are_not_convicted_for_less_than_a_mebibyte() -> None:
    before = [[2 * MIB] * 15 for _ in range(5)]
    after = [[2 * MIB + 0.5 * MIB] * 15 for _ in range(5)]
    assert judge_two_arms(before, after).outcome is Outcome.PLATEAU


def test_growth_of_a_page_is_not_growth() -> None:
    before = [[8 * MIB] * 15 for _ in range(5)]
    after = [[8 * MIB + 1024.0 * index for index in range(15)] for _ in range(5)]
    assert judge_two_arms(before, after).outcome is Outcome.PLATEAU
    tight = MemoryLimits(growth_bytes=512.0, growth_percent=0.0)
    assert judge_two_arms(before, after, limits=tight).outcome is Outcome.GROWING


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([simulate.flat, simulate.dipping, simulate.leaking, simulate.higher]))
def test_early_acquittal_gives_the_full_verdict(seed: int, source: simulate.MemorySource) -> None:
    before, after = arm(simulate.flat, seed), arm(source, seed + 1)
    for count in range(1, 6):
        if not can_still_regress(before[:count], after[:count], 3):
            assert not judge_two_arms(before, after).is_regression
            assert acquitted(before[:count], after[:count], 3).outcome is Outcome.PLATEAU
            break


def test_acquittal_is_refused_while_the_case_is_open() -> None:
    with pytest.raises(ValueError, match="could still regress"):
        acquitted(arm(simulate.flat, 1, 2), arm(simulate.leaking, 2, 2), 3)


def test_one_arm_tells_a_leak_from_a_plateau() -> None:
    assert judge_one_arm([64 * MIB + index * MIB for index in range(20)]).outcome is Outcome.GROWING
    assert judge_one_arm([64 * MIB] * 20).outcome is Outcome.PLATEAU


def test_one_arm_with_few_rounds_cannot_tell() -> None:
    verdict = judge_one_arm([64 * MIB] * 9)
    assert verdict.outcome is Outcome.CANNOT_TELL and "8 are needed" in verdict.reason


def test_one_arm_never_calls_a_single_step_in_the_warm_up_growth() -> None:
    series = [32 * MIB] * 3 + [64 * MIB] * 17
    assert judge_one_arm(series).outcome is Outcome.PLATEAU


def test_error_rates_stay_within_what_the_manual_promises() -> None:
    rates = simulate.error_rates(trials=120, seed=7)
    two_arms = {rate.scenario: rate for rate in rates if rate.rule == "two arms"}
    for rate in two_arms.values():
        if rate.scenario == simulate.WARM_UP_BEYOND_WINDOW:
            continue
        if rate.truth == "plateau":
            assert rate.convicted_percent <= (5.0 if rate.scenario == simulate.WARM_UP else 2.5), rate
        else:
            assert rate.convicted_percent >= 97.0, rate
            assert rate.named_percent >= 95.0, rate
    for rate in rates:
        if rate.rule == "noisy counts":
            assert (rate.convicted_percent <= 2.0) if rate.truth == "unchanged" else (rate.convicted_percent >= 95.0)
