"""Makes measurements without measuring, for tests of what is done with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.model.allocator import AllocatorConfig
from harness.model.arm import PIN, TREE, Arm
from harness.model.plan import Job
from harness.model.workload import MemorySeries, Variant, Workload
from results.records import Build, Measurement, Sample

CONFIG = AllocatorConfig("ebb", "git", repository="self")
BEFORE = Arm(PIN, CONFIG, Build("ebb", "a" * 40, sha256="1"), None)
AFTER = Arm(TREE, CONFIG, Build("ebb", "b" * 40, sha256="2"), None)
VARIANT = Variant("default", (), (), ())
CHURN = Workload(
    name="churn", summary="", stresses="", kind="binary", folder=Path("."), command=(), binary="churn", threads=1,
    tags=frozenset({"gated"}), metrics=("instructions", "rss_bytes"), timeout_s=5.0, region="marked", requires=(),
    memory=MemorySeries("round", 3), memory_runs=1, variants=(VARIANT,),
)  # fmt: skip


def measured(job: Job, samples: tuple[Sample, ...], **changes: object) -> Measurement:
    """Return the measurement that a job would have become."""
    made = Measurement(
        run_id="r", build=job.arm.build, workload=job.workload.name, variant=job.variant.name, profile=job.profile,
        provider=job.provider, arm=job.arm.role, status="ok", repeat=job.repeat, position=job.position,
        checksum="0" * 16, operations=1000, samples=samples,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def count(value: float) -> tuple[Sample, ...]:
    """Return the samples of a counting execution."""
    return (Sample("instructions", "count", value), Sample("function_instructions", "count", value / 2, detail="free"))


def series(values: list[float]) -> tuple[Sample, ...]:
    """Return the samples of a memory execution: a point at each round, and one elsewhere that does not belong."""
    points = [Sample("rss_bytes", "byte", value, checkpoint=index, label="round") for index, value in enumerate(values)]
    return (*points, Sample("rss_bytes", "byte", 1.0, checkpoint=len(values), label="idle"))
