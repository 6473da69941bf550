"""Steps, ramps and constants of a memory difference are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analyze.memory_diff import by_category, compare_series, grouped_sentences
from harness.analyze.robust import median_series

MIB = float(1 << 20)
BASE = [50 * MIB] * 20


def noisy(series: list[float], seed: int = 5) -> list[float]:
    return list(np.asarray(series) + np.random.default_rng(seed).normal(0, 0.02 * MIB, len(series)))


def test_a_step_is_placed_at_its_checkpoint() -> None:
    found = compare_series("rss_bytes", noisy(BASE), noisy([50 * MIB] * 8 + [58 * MIB] * 12, 6), MIB)
    assert (found.shape, found.begins_at) == ("step", 8)
    assert found.level == pytest.approx(8 * MIB, rel=0.02)


def test_a_ramp_has_its_slope() -> None:
    leak = [50 * MIB + max(0, index - 5) * MIB for index in range(20)]
    found = compare_series("rss_bytes", noisy(BASE), noisy(leak, 6), MIB)
    assert found.shape == "ramp" and abs(found.begins_at - 5) <= 1
    assert found.per_checkpoint == pytest.approx(MIB, rel=0.1)


def test_a_warm_up_is_a_rise_that_ends() -> None:
    warm = [50 * MIB + 4 * MIB * (1 - 0.6**index) for index in range(20)]
    found = compare_series("rss_bytes", noisy(BASE), noisy(warm, 6), MIB)
    assert found.shape == "rise" and found.ends_at < 10
    assert found.level == pytest.approx(4 * MIB, rel=0.15)


def test_metrics_that_moved_alike_share_a_sentence() -> None:
    stepped = [50 * MIB] * 8 + [58 * MIB] * 12
    found = by_category(
        {"a": [BASE], "b": [BASE], "c": [BASE]}, {"a": [stepped], "b": [stepped], "c": [[53 * MIB] * 20]}, MIB
    )
    assert grouped_sentences(found) == [
        "a, b: steps by +8.00 MiB at checkpoint 8",
        "c: is 3.00 MiB higher from the first checkpoint on",
    ]


def test_a_difference_from_the_start_is_constant() -> None:
    found = compare_series("rss_bytes", noisy(BASE), noisy([54 * MIB] * 20, 6), MIB)
    assert (found.shape, found.begins_at) == ("constant", 0)


def test_less_than_the_floor_is_the_same() -> None:
    assert compare_series("rss_bytes", BASE, [50.5 * MIB] * 20, MIB).shape == "same"
    assert compare_series("rss_bytes", [], [], MIB).shape == "same"


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=25))
def test_a_series_is_the_same_as_itself(series: list[float]) -> None:
    assert compare_series("rss_bytes", series, series, 1.0).shape == "same"


def test_median_over_processes_is_as_long_as_the_shortest() -> None:
    assert median_series([[1, 2, 3], [3, 4], [2, 9]]) == [2, 4]
    assert median_series([]) == []


def test_the_category_that_moved_most_comes_first() -> None:
    before = {"anonymous_bytes": [BASE], "lazyfree_bytes": [BASE], "rss_bytes": [BASE], "only_before": [BASE]}
    after = {"anonymous_bytes": [[60 * MIB] * 20], "lazyfree_bytes": [BASE], "rss_bytes": [[53 * MIB] * 20]}
    found = by_category(before, after, MIB)
    assert [item.metric for item in found] == ["anonymous_bytes", "rss_bytes", "lazyfree_bytes"]


@given(st.lists(st.floats(-1e9, 1e9), min_size=4, max_size=20))
def test_any_difference_has_a_shape(gap: list[float]) -> None:
    found = compare_series("rss_bytes", [0.0] * len(gap), gap, 4096.0)
    assert 0 <= found.begins_at <= found.ends_at < len(gap)
    assert found.final == gap[-1]


def test_what_is_resident_comes_before_the_allocator_s_own_words() -> None:
    before = {"allocator_mapped_bytes": [BASE], "rss_bytes": [BASE]}
    after = {"allocator_mapped_bytes": [[99 * MIB] * 20], "rss_bytes": [[53 * MIB] * 20]}
    assert [item.metric for item in by_category(before, after, MIB)] == ["rss_bytes", "allocator_mapped_bytes"]
