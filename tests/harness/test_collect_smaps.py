"""Provider smaps: what it reads must be what the fake workload really holds."""

from __future__ import annotations

import pytest

from harness.collect.memory import high_water_bytes, read_tree
from harness.collect.providers import provider_named
from harness.collect.validity import Void

MIB = 1 << 20
SLACK = 3 * MIB
"""A small C program with its libraries."""


def measure(bench, *arguments, **fields):
    """Return the samples of one run by metric; those at checkpoints as lists in order."""
    reading = provider_named("smaps").measure(bench.job(*arguments, **fields), bench.context())
    series, single = {}, {}
    for sample in reading.samples:
        if sample.checkpoint is None:
            single[sample.metric] = sample.value
        else:
            series.setdefault(sample.metric, []).append(sample.value)
    return series, single


def test_what_is_held_is_what_is_read(bench):
    series, single = measure(bench, "--hold", str(40 * MIB), "--rounds", "3")
    for rss in series["rss_bytes"]:
        assert 40 * MIB <= rss <= 40 * MIB + SLACK
    assert 40 * MIB <= single["peak_rss_bytes"] <= 40 * MIB + SLACK
    assert single["end_rss_bytes"] == series["rss_bytes"][-1]
    assert series["live_bytes"] == [40.0 * MIB] * 3


def test_growth_shows_round_by_round(bench):
    series, _ = measure(bench, "--grow", str(4 * MIB), "--rounds", "5")
    steps = [after - before for before, after in zip(series["rss_bytes"], series["rss_bytes"][1:])]
    assert all(4 * MIB <= step <= 4 * MIB + SLACK // 4 for step in steps)


def test_a_peak_between_checkpoints_is_seen_in_its_round(bench):
    """A burst that is over before the checkpoint leaves no trace in Rss, only in the high-water mark."""
    series, single = measure(bench, "--burst", str(32 * MIB), "--rounds", "3")
    for rss, peak in zip(series["rss_bytes"], series["round_peak_rss_bytes"]):
        assert rss < SLACK and peak >= 32 * MIB
    assert single["peak_rss_bytes"] >= 32 * MIB


def test_each_round_has_a_peak_of_its_own(bench):
    """The high-water mark is reset at every checkpoint: the first round's peak does not cover up the others."""
    series, single = measure(bench, "--hold", str(2 * MIB), "--rounds", "2")
    assert series["round_peak_rss_bytes"][1] < 2 * MIB + SLACK
    assert single["peak_rss_bytes"] < 2 * MIB + SLACK


def test_a_forked_tree_is_summed_by_pss_and_not_counted_twice(bench):
    series, single = measure(bench, "--hold", str(40 * MIB), "--fork", "--rounds", "3")
    assert series["processes"] == [2.0, 2.0, 2.0]
    for rss in series["rss_bytes"]:
        assert 40 * MIB <= rss <= 40 * MIB + SLACK
    assert single["peak_rss_bytes"] <= 40 * MIB + SLACK


def test_the_workload_s_own_figures_are_kept(bench):
    series, single = measure(bench, "--rounds", "3")
    assert series["faults_minor"] == [0.0, 1.0, 2.0]
    assert single["region_s"] == 0.5
    assert single["process_minor_faults"] > 0


def test_modes_and_allocator_are_part_of_the_reading(bench):
    own = bench.layout.release / "libown.so"
    reading = provider_named("smaps").measure(bench.job(allocator="own", preload=own), bench.context())
    assert reading.outcome.start.malloc_object == str(own)
    assert reading.outcome.start.modes["heap"] == "emulated"


def test_an_allocator_that_cannot_be_loaded_is_noticed(bench, tmp_path):
    """The dynamic linker only warns about a preload it cannot load, and the libc's malloc runs instead."""
    broken = tmp_path / "libbroken.so"
    broken.write_bytes(b"no ELF")
    with pytest.raises(Void, match="the allocator was not loaded"):
        provider_named("smaps").measure(bench.job(allocator="own", preload=broken), bench.context())


def test_a_process_that_is_gone_has_no_reading():
    assert read_tree(0x7FFFFFFE) is None
    assert high_water_bytes(0x7FFFFFFE) is None


def test_gbench_programs_are_refused(bench):
    assert provider_named("smaps").accepts(bench.job(kind="gbench").workload)
