"""Every workload says what the protocol asks, and the same whatever allocator it runs under."""

from __future__ import annotations

import re
import subprocess

import pytest

from tiny_arguments import TINY
from workload_runs import Finished, binary, manifests, reference_library, run, run_tiny

NAMES = sorted(manifests())
PROVIDER_METRICS = {"instructions", "rss_bytes", "wall_s", "latency_ns"}
MODES = {"native", "emulated", "unused"}


def check_stream(name: str, done: Finished) -> None:
    """Assert that a free run printed start, numbered checkpoints and end, and nothing else."""
    assert [event["event"] for event in done.events] == ["start", *["checkpoint"] * len(done.checkpoints), "end"]
    assert len(done.events) == len(done.output.splitlines())
    assert done.errors == ""
    assert done.start["protocol"] == 1 and done.start["workload"] == name and done.start["pid"] > 0
    assert set(done.start["modes"]) == {"heap", "collect", "park"}
    assert set(done.start["modes"].values()) <= MODES
    assert [point["checkpoint"] for point in done.checkpoints] == list(range(len(done.checkpoints)))
    times = [point["time_s"] for point in done.checkpoints]
    assert times == sorted(times)
    assert all(point["live_bytes"] >= 0 and isinstance(point["metrics"], dict) for point in done.checkpoints)
    assert re.fullmatch("[0-9a-f]{16}", done.end["checksum"])
    assert done.end["operations"] > 0


def test_every_workload_has_tiny_arguments() -> None:
    assert sorted(TINY) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_stream(name: str) -> None:
    done = run_tiny(name)
    check_stream(name, done)
    assert "libc" in done.start["malloc_object"]
    manifest = manifests()[name]
    if "memory" in manifest:
        assert manifest["memory"]["series_label"] in {point["label"] for point in done.checkpoints}
    figures = set(done.end["metrics"]).union(*(point["metrics"] for point in done.checkpoints))
    assert set(manifest["metrics"]) - PROVIDER_METRICS <= figures


@pytest.mark.parametrize("name", NAMES)
def test_checksum_is_the_same_in_every_run_and_under_another_allocator(name: str) -> None:
    first, second = run_tiny(name), run_tiny(name)
    other = run_tiny(name, preload=[reference_library("jemalloc")])
    assert "jemalloc" in other.start["malloc_object"]
    for done in (second, other):
        assert done.end["checksum"] == first.end["checksum"]
        assert done.end["operations"] == first.end["operations"]


@pytest.mark.parametrize("name", ["churn", "remote", "realloc", "teardown"])
def test_checksum_follows_the_seed(name: str) -> None:
    assert run_tiny(name).end["checksum"] != run_tiny(name, "--seed", "2").end["checksum"]


def test_the_region_is_timed_and_its_faults_counted() -> None:
    metrics = run_tiny("calloc_large").end["metrics"]
    assert metrics["region_s"] > 0 and metrics["faults_minor"] > 0


def test_live_bytes_are_zero_at_the_end_of_a_teardown_round_and_not_at_its_peak() -> None:
    points = run_tiny("teardown").checkpoints
    assert {point["live_bytes"] == 0 for point in points if point["label"] == "round"} == {True}
    assert {point["live_bytes"] > 0 for point in points if point["label"] == "peak"} == {True}


def test_the_floor_lies_between_live_bytes_and_the_memory_filled() -> None:
    points = {point["label"]: point for point in run_tiny("idle").checkpoints}
    floor = points["freed"]["metrics"]["floor_bytes"]
    assert points["freed"]["live_bytes"] < floor < points["filled"]["live_bytes"]


@pytest.mark.parametrize("name", NAMES)
def test_needs_libc_alone(name: str) -> None:
    listing = subprocess.run(
        ["readelf", "-d", binary(name)], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", listing))
    assert needed and all(library.startswith(("libc.so", "ld-linux")) for library in needed), needed


@pytest.mark.parametrize("name", NAMES)
def test_help(name: str) -> None:
    done = run(name, "--help")
    assert done.code == 0 and done.output.startswith(f"usage: {name}") and not done.errors
