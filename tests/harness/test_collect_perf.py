"""Provider perf: every format of its output that is known to mislead, and live counting of software events."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from harness.collect import perf_output
from harness.collect.providers import all_providers, instruction_counter, provider_named
from harness.collect.providers.perf import (
    HARDWARE_EVENTS,
    PerfProvider,
    probe_counters,
    processors_of_one_kind,
    read_samples,
    require_hardware,
)
from harness.collect.validity import Void
from harness.model.errors import CannotMeasure

RECORDED = Path(__file__).parent / "fixtures" / "perf"


def recorded(name: str) -> str:
    """Return a recorded output of perf."""
    return (RECORDED / name).read_text()


@pytest.mark.parametrize(
    ("name", "state", "value"),
    [
        ("whole.json", "counted", 1234567.0),
        ("without_modifier.json", "counted", 1234567.0),
        ("no_pmu.json", "not supported", 0.0),
        ("not_counted.json", "not counted", 0.0),
        ("never_ran.json", "not counted", 0.0),
        ("multiplexed.json", "scaled", 0.0),
        ("hybrid_one_kind.json", "counted", 5555555.0),
        ("hybrid_idle_atom.json", "counted", 5555555.0),
        ("hybrid_moved.json", "scaled", 0.0),
        ("hybrid_scaled.json", "scaled", 0.0),
        ("software.json", "not counted", 0.0),
    ],
)
def test_instructions_in_a_recorded_output(name, state, value):
    count = perf_output.pick(perf_output.parse(recorded(name)), "instructions")
    assert (count.state, count.value) == (state, value)


def test_comment_and_blank_lines_are_no_events():
    assert len(perf_output.parse(recorded("whole.json"))) == 2


@pytest.mark.parametrize("name", ["text_output.txt", "comma_locale.json"])
def test_what_is_not_json_is_refused(name):
    """A comma as decimal point comes from a run without LC_ALL=C."""
    with pytest.raises(perf_output.BrokenOutput):
        perf_output.parse(recorded(name))


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("no_pmu.json", "not supported here"),
        ("not_counted.json", "never scheduled"),
        ("multiplexed.json", "its value is a guess"),
        ("hybrid_moved.json", "its value is a guess"),
        ("text_output.txt", "not its JSON"),
    ],
)
def test_a_figure_that_is_not_whole_voids_the_run(bench, name, clause):
    with pytest.raises(Void, match=clause):
        read_samples(recorded(name), {"instructions:u": "instructions"}, bench.job(provider="perf"))


def test_whole_counts_become_samples(bench):
    samples = read_samples(recorded("whole.json"), HARDWARE_EVENTS, bench.job(provider="perf"))
    assert {s.metric: s.value for s in samples} == {"instructions": 1234567.0, "cycles": 863333.0}


def test_task_clock_is_stored_in_seconds(bench):
    samples = read_samples(recorded("software.json"), {"task-clock": "task_clock_s"}, bench.job(provider="perf"))
    assert 0 < samples[0].value < 1


def fake_perf(folder: Path, answer: str) -> str:
    """Return a program that answers like a perf of another machine."""
    path = folder / "perf"
    (folder / "answer").write_text(answer)
    path.write_text(f"#!/bin/sh\ncat {folder}/answer >&2\nexit 0\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_hybrid_processors_are_counted_on_one_kind_of_core(tmp_path):
    (tmp_path / "cpus").write_text("0-7\n")
    assert processors_of_one_kind(tmp_path / "cpus") == "0-7"
    assert processors_of_one_kind(tmp_path / "none") == ""


class TestProbe:
    def test_without_perf(self, monkeypatch):
        monkeypatch.setattr("shutil.which", lambda name: None)
        assert "apt-get install linux-perf" in probe_counters().sentence

    def test_when_even_software_events_are_forbidden(self, tmp_path):
        perf = fake_perf(tmp_path, "Error:\nAccess to performance monitoring is limited.\n")
        capability = probe_counters(perf, paranoid="4")
        assert not capability.software and "perf_event_paranoid is 4" in capability.sentence

    def test_with_a_pmu(self, tmp_path):
        answer = recorded("whole.json") + recorded("no_pmu.json").splitlines()[3] + "\n"
        assert probe_counters(fake_perf(tmp_path, answer)).hardware

    def test_without_a_pmu_it_says_what_works_and_what_would_help(self, tmp_path):
        capability = probe_counters(fake_perf(tmp_path, recorded("no_pmu.json")))
        assert capability.software and not capability.hardware
        assert "use the callgrind provider" in capability.sentence

    def test_instructions_asked_of_a_machine_without_pmu(self):
        provider = PerfProvider()
        provider._capability = probe_counters("/nonexistent/perf")
        with pytest.raises(CannotMeasure, match="perf cannot count instructions here"):
            require_hardware(provider)

    def test_a_counter_that_is_asked_for_must_be_there(self, monkeypatch):
        """A gate says so at once, not after minutes that every case was not measured."""
        monkeypatch.setattr(all_providers()["perf"], "_capability", probe_counters("/nonexistent/perf"))
        with pytest.raises(CannotMeasure, match="perf cannot count instructions here"):
            instruction_counter("perf")
        assert instruction_counter("callgrind") == instruction_counter() == "callgrind"

    def test_the_default_counter_follows_the_probe(self):
        expected = "perf" if probe_counters().hardware else "callgrind"
        assert instruction_counter() == expected


@pytest.mark.skipif(not probe_counters().software, reason=f"perf here: {probe_counters().sentence}")
class TestLive:
    def measure(self, bench, *arguments, **fields):
        """Run the fake workload under perf and return its samples by metric."""
        reading = provider_named("perf").measure(bench.job(*arguments, provider="perf", **fields), bench.context())
        return {sample.metric: sample.value for sample in reading.samples if sample.checkpoint is None}

    def test_only_the_faults_of_the_region_are_counted(self, bench):
        """40 MiB are touched before the region opens and 4 MiB after it closed: neither may show."""
        counted = self.measure(bench, "--hold", str(40 << 20), "--grow", str(4 << 20), "--pairs", "100")
        assert counted["page_faults"] < (4 << 20) / os.sysconf("SC_PAGE_SIZE")

    def test_the_whole_process_where_the_manifest_says_so(self, bench):
        counted = self.measure(bench, "--hold", str(40 << 20), region="process")
        assert counted["page_faults"] >= (40 << 20) / os.sysconf("SC_PAGE_SIZE")
        assert counted["task_clock_s"] > 0

    def test_a_region_that_never_opened_is_void(self, bench):
        with pytest.raises(Void, match="never opened its region"):
            self.measure(bench, "--no-region")

    def test_a_crash_is_void_although_perf_exits_with_0(self, bench):
        with pytest.raises(Void, match="without its end event.*Segmentation fault"):
            self.measure(bench, "--misbehave", "crash")

    def test_a_child_that_outlives_its_parent_is_void(self, bench):
        with pytest.raises(Void, match="not counted to their end"):
            self.measure(bench, "--misbehave", "leave-child")

    def test_a_hang_ends_with_the_relay(self, bench):
        with pytest.raises(Void, match="did not end in its time"):
            self.measure(bench, "--misbehave", "hang", timeout_s=0.5)
