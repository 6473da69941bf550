"""Provider gbench: reads Google Benchmark's JSON and proves the allocator from outside."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from harness.collect.providers import provider_named
from harness.collect.validity import Void

SCRIPT = Path(__file__).parent / "fixtures" / "fake_benchmark.py"


@pytest.fixture
def measure(bench):
    """Return a function that runs the fake benchmark program under an allocator."""
    shutil.copy(SCRIPT, bench.layout.workload_binaries / "benchmark.py")

    def run(*words: str, **fields: object):
        # The interpreter is the program: what is mapped is found by its name.
        job = bench.job(
            str(bench.layout.workload_binaries / "benchmark.py"), *words, provider="gbench", kind="gbench",
            binary=Path(sys.executable).resolve().name, **fields,
        )  # fmt: skip
        target = bench.layout.workload_binaries / Path(sys.executable).resolve().name
        if not target.exists():
            shutil.copy(Path(sys.executable).resolve(), target)
        return provider_named("gbench").measure(job, bench.context())

    return run


def test_latencies_are_in_nanoseconds_by_operation(measure):
    samples = measure().samples
    latency = {sample.detail: sample.value for sample in samples if sample.metric == "latency_ns"}
    assert latency == {"malloc_free/16": 20.5, "malloc_free/1024": 500.0}


def test_the_libc_is_seen_as_active(measure):
    assert Path(measure().active_allocator).name.startswith("libc.so")


def test_a_preloaded_object_is_seen_in_the_maps(measure, bench):
    own = bench.layout.release / "libown.so"
    assert measure(allocator="own", preload=own).active_allocator == str(own)


def test_an_object_that_was_not_loaded_is_void(measure, tmp_path):
    broken = tmp_path / "libbroken.so"
    broken.write_bytes(b"no ELF")
    with pytest.raises(Void, match="the allocator was not loaded"):
        measure(allocator="own", preload=broken)


@pytest.mark.parametrize(
    ("how", "clause"),
    [
        ("error", "wrong byte"),
        ("empty", "ran no benchmark"),
        ("broken", "no Google Benchmark output"),
        ("exit", "exit code 9"),
    ],
)
def test_a_program_that_went_wrong_is_void(measure, how, clause):
    with pytest.raises(Void, match=clause):
        measure(f"--misbehave={how}")


def test_only_benchmark_programs_are_accepted(bench):
    assert provider_named("gbench").accepts(bench.job().workload)
    assert not provider_named("gbench").accepts(bench.job(kind="gbench").workload)
