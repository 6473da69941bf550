"""Records for the tests of the store: valid in every field, told apart by what a test names."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from results import Attachment, Build, Environment, Measurement, Run, Sample

EPOCH = datetime(2026, 5, 4, 3, 2, 1, 123456, tzinfo=timezone.utc)

ENVIRONMENT = Environment(
    machine="x86_64",
    kernel="6.1.0-18-amd64",
    cpu_model="AMD EPYC 7B13",
    cpu_count=2,
    memory_bytes=8 << 30,
    page_size_bytes=4096,
    thp_mode="madvise",
    governor="performance",
    libc="glibc 2.36",
    tunables="glibc.cpu.hwcaps=-AVX512F",
    tools={"valgrind": "3.19.0", "python": "3.11.2"},
)


def make_run(**fields: Any) -> Run:
    """Return a run that began at a fixed time unless told otherwise."""
    return Run(
        **{
            "kind": "bench",
            "command": "make bench",
            "suite_revision": "5" * 40,
            "environment": ENVIRONMENT,
            "started_at": EPOCH,
            **fields,
        }
    )


def make_build(allocator: str = "ebb", revision: str = "a" * 40, **fields: Any) -> Build:
    """Return a build of an allocator."""
    return Build(allocator=allocator, revision=revision, **fields)


def make_measurement(run: Run, *, samples: int = 3, **fields: Any) -> Measurement:
    """Return a measurement with a series of resident memory of so many checkpoints, and one attachment."""
    series = tuple(
        Sample("rss_bytes", "bytes", float(1_000_000 + index), checkpoint=index, label="round", time_s=index / 8)
        for index in range(samples)
    )
    return Measurement(
        **{
            "run_id": run.id,
            "build": make_build(),
            "workload": "teardown",
            "variant": "default",
            "profile": "quick",
            "provider": "smaps",
            "arm": "tree",
            "status": "ok",
            "position": 4,
            "command": "teardown --rounds 3",
            "active_allocator": "libebb.so",
            "modes": {"heap": "native", "park": "emulated"},
            "checksum": "0123456789abcdef",
            "operations": 2**40,
            "started_at": run.started_at + timedelta(seconds=1),
            "duration_s": 0.1,
            "samples": series,
            "attachments": (Attachment("output", b"\x00\xff raw"),),
            **fields,
        }
    )
