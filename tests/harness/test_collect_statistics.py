"""The allocator's own statistics: asked at every checkpoint, without a word of the workload's."""

from __future__ import annotations

import dataclasses
import glob
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.collect.providers.statistics import StatisticsProvider
from harness.collect.validity import Void

FIXTURES = Path(__file__).resolve().parent / "fixtures"
SOURCE = """
#include <stddef.h>
#include <stdio.h>
size_t own_words(char *buffer, size_t capacity) { return (size_t)snprintf(buffer, capacity, WORDS); }
"""


def measured(bench, job):
    """Return the samples by metric, each a list over the checkpoints."""
    found = {}
    for sample in StatisticsProvider().measure(job, bench.context()).samples:
        found.setdefault(sample.metric, []).append(sample.value)
    return found


def test_glibc_is_asked_through_mallinfo2(bench):
    samples = measured(bench, bench.job(provider="statistics"))
    assert len(samples["allocator_live_bytes"]) == len(samples["allocator_heap_bytes"]) > 1
    assert min(samples["allocator_heap_bytes"]) > 0


def test_jemalloc_is_asked_through_mallctl(bench):
    installed = sorted(glob.glob("/usr/lib/*/libjemalloc.so.2"))
    assert installed, "libjemalloc2 is in harness/setup/debian-packages.txt: run `sh harness/setup/install`"
    job = bench.job(provider="statistics", preload=installed[0])
    samples = measured(bench, job)
    assert min(samples["allocator_resident_bytes"]) >= min(samples["allocator_active_bytes"]) > 0


@pytest.fixture
def speaking(bench, tmp_path):
    """Return a job whose allocator has statistics of its own, which say `words`."""
    def job(words):
        folder = tmp_path / f"speaking{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        shutil.copy(FIXTURES / "bump_allocator.c", folder / "speaking.c")
        with (folder / "speaking.c").open("a") as sink:
            sink.write(SOURCE.replace("WORDS", words))
        command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(folder / "libown.so"), str(folder / "speaking.c")]
        subprocess.run(command, check=True)
        made = bench.job(provider="statistics", allocator="own", preload=folder / "libown.so")
        config = dataclasses.replace(made.arm.config, statistics="own_words")
        return dataclasses.replace(made, arm=dataclasses.replace(made.arm, config=config))

    return job


def test_an_allocator_s_own_function_is_asked_first(bench, speaking):
    samples = measured(bench, speaking('"{\\"dirty_bytes\\": 4096, \\"classes\\": [1], \\"name\\": \\"x\\"}"'))
    assert set(samples) == {"allocator_dirty_bytes"} and set(samples["allocator_dirty_bytes"]) == {4096}


def test_what_is_no_json_is_said(bench, speaking):
    with pytest.raises(Void, match="answered b'oops' when asked for its statistics"):
        measured(bench, speaking('"oops"'))


def test_a_workload_without_checkpoints_is_refused(bench):
    assert "waits at no checkpoint" in StatisticsProvider().accepts(bench.job(kind="gbench").workload)
