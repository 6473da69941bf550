"""Cases: how many runs a verdict takes, and that stopping early or confirming changes no answer."""

from __future__ import annotations

import numpy as np
import pytest

from harness.analyze import simulate
from harness.analyze.case import Case, CountCase, MemoryCase
from harness.analyze.plateau import MemoryLimits
from harness.analyze.verdict import Outcome, Threshold

LIMIT = Threshold(0.05, "%", "test")


def run_counts(case: CountCase, before: list[float], after: list[float]) -> int:
    pairs = 0
    while case.needs_pair:
        case.add_pair(before[pairs % len(before)], after[pairs % len(after)])
        pairs += 1
    return pairs


def run_memory(case: MemoryCase, old: simulate.MemorySource, new: simulate.MemorySource, seed: int) -> int:
    rng = np.random.default_rng(seed)
    pairs = 0
    while case.needs_pair:
        case.add_pair(list(old(rng)), list(new(rng)))
        pairs += 1
    return pairs


def test_an_unchanged_exact_count_takes_one_pair() -> None:
    case = CountCase(LIMIT, "instructions", exact=True)
    assert run_counts(case, [1e6], [1e6]) == 1
    assert case.verdict().outcome is Outcome.UNCHANGED


def test_a_changed_exact_count_is_measured_twice() -> None:
    case = CountCase(LIMIT, "instructions", exact=True)
    assert run_counts(case, [1e6], [1.01e6]) == 2
    assert case.verdict().outcome is Outcome.REGRESSED


def test_a_count_that_does_not_repeat_falls_back_to_the_noisy_rule() -> None:
    rng = np.random.default_rng(1)
    case = CountCase(LIMIT, "instructions", exact=True)
    pairs = run_counts(case, list(1e6 + rng.normal(0, 3000, 9)), list(1.002e6 + rng.normal(0, 3000, 9)))
    assert not case.exact
    assert pairs <= 5
    assert case.verdict().outcome is Outcome.UNCHANGED


def test_noisy_counts_stop_once_the_arms_overlap() -> None:
    figures = ([100.0, 102.0, 100.0, 102.0, 100.0], [101.0] * 5)
    case = CountCase(LIMIT, "instructions", exact=False)
    assert run_counts(case, *figures) == 2
    assert case.verdict().outcome is Outcome.UNCHANGED
    complete = CountCase(LIMIT, "instructions", exact=False, complete=True)
    assert run_counts(complete, *figures) == 5


@pytest.mark.parametrize(("after", "outcome"), [(93.0, Outcome.IMPROVED), (107.0, Outcome.REGRESSED)])
def test_a_count_that_repeats_badly_and_moved_far_is_said_to_have_moved(after: float, outcome: Outcome) -> None:
    case = CountCase(LIMIT, "instructions", exact=True)
    jitter = [0.0, 0.03, -0.02, 0.01, -0.03]
    assert run_counts(case, [100.0 + step for step in jitter], [after - step for step in jitter]) == 5
    assert not case.exact
    assert case.verdict().outcome is outcome


def test_noisy_regression_takes_five_pairs() -> None:
    case = CountCase(LIMIT, "instructions", exact=False, histories=lambda: [[100, 100.1, 100, 99.9, 100, 100.1]])
    assert run_counts(case, [100, 100.1, 99.9, 100.05, 100.02], [104, 104.1, 103.9, 104.05, 104.02]) == 5
    assert case.verdict().outcome is Outcome.REGRESSED


def test_a_leak_is_convicted_and_confirmed() -> None:
    case = MemoryCase(3, MemoryLimits())
    assert run_memory(case, simulate.flat, simulate.leaking, 1) == 10
    verdict = case.verdict()
    assert verdict.outcome is Outcome.GROWING
    assert "confirmed" in verdict.reason


def test_memory_against_itself_is_acquitted_early() -> None:
    pairs = [run_memory(MemoryCase(3, MemoryLimits()), simulate.flat, simulate.flat, seed) for seed in range(40)]
    assert sum(pairs) / len(pairs) < 4.0


def test_a_conviction_that_is_not_repeated_is_dropped() -> None:
    case = MemoryCase(3, MemoryLimits())
    rng = np.random.default_rng(4)
    for index in range(10):
        if not case.needs_pair:
            break
        source = simulate.higher if index < 5 else simulate.flat
        case.add_pair(list(simulate.flat(rng)), list(source(rng)))
    verdict = case.verdict()
    assert verdict.outcome is Outcome.PLATEAU
    assert "not confirmed" in verdict.reason


def test_too_few_rounds_stop_at_once() -> None:
    case = MemoryCase(3, MemoryLimits())
    case.add_pair([1.0] * 6, [1.0] * 6)
    assert not case.needs_pair
    assert case.verdict().outcome is Outcome.CANNOT_TELL


@pytest.mark.parametrize("case", [CountCase(LIMIT, "instructions", exact=True), MemoryCase(3, MemoryLimits())])
def test_a_case_without_runs_cannot_tell(case: Case) -> None:
    assert case.needs_pair
    assert case.verdict().outcome is Outcome.CANNOT_TELL


def test_200_memory_verdicts_against_itself_raise_at_most_two_alarms() -> None:
    sources = [simulate.flat, simulate.autocorrelated, simulate.warming, simulate.dipping]
    alarms = 0
    for seed in range(200):
        case = MemoryCase(3, MemoryLimits())
        source = sources[seed % len(sources)]
        run_memory(case, source, source, seed)
        alarms += case.verdict().is_regression
    assert alarms <= 2
