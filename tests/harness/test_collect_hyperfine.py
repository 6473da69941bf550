"""Provider hyperfine: live, and its export when it is not what it should be."""

from __future__ import annotations

import json

import pytest

from harness.collect.providers import provider_named
from harness.collect.providers.hyperfine import RUNS, read_times
from harness.collect.validity import Void


def measure(bench, *arguments, **fields):
    """Time the fake workload."""
    return provider_named("hyperfine").measure(bench.job(*arguments, provider="hyperfine", **fields), bench.context())


def test_every_run_is_a_sample(bench):
    reading = measure(bench)
    times = [sample for sample in reading.samples if sample.metric == "wall_s"]
    assert [sample.checkpoint for sample in times] == list(range(RUNS))
    assert all(sample.value > 0 for sample in times)
    assert reading.outcome.end.operations == 1000


def test_the_allocator_is_proved_here_too(bench):
    own = bench.layout.release / "libown.so"
    reading = provider_named("hyperfine").measure(
        bench.job(provider="hyperfine", allocator="own", preload=own), bench.context()
    )
    assert reading.outcome.start.malloc_object == str(own)


@pytest.mark.parametrize("how", ["crash", "wrong", "exit7"])
def test_a_failing_workload_is_void_and_says_how_to_see_why(bench, how):
    with pytest.raises(Void, match="--provider smaps.*hyperfine said: Error: [^.]*$"):
        measure(bench, "--misbehave", how)


def test_a_workload_without_end_is_void(bench):
    with pytest.raises(Void, match="without its end event"):
        measure(bench, "--misbehave", "no-end")


def test_a_hang_is_ended(bench):
    with pytest.raises(Void, match="did not end in its time"):
        measure(bench, "--misbehave", "hang", timeout_s=0.2)


@pytest.mark.parametrize("text", ["", "{}", '{"results": []}', '{"results": [{"times": ["x"]}]}'])
def test_a_broken_export_is_void(bench, text):
    with pytest.raises(Void, match="export cannot be read"):
        read_times(text, bench.job(provider="hyperfine"))


def test_missing_runs_are_void(bench):
    text = json.dumps({"results": [{"times": [0.1], "user": 0.1, "system": 0.0}]})
    with pytest.raises(Void, match="timed 1 runs instead of 3"):
        read_times(text, bench.job(provider="hyperfine"))


def test_apps_and_benchmarks_are_refused(bench):
    provider = provider_named("hyperfine")
    assert "smaps" in provider.accepts(bench.job(kind="app", command=("x",)).workload)
    assert "gbench" in provider.accepts(bench.job(kind="gbench").workload)


def test_without_hyperfine_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    probe = provider_named("hyperfine").probe()
    assert not probe.available and "apt-get install hyperfine" in probe.sentence
