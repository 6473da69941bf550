"""A store with results as a real bench leaves them, from a fixed seed: for the tests of the dashboard.

What is made: a bench over eight arms with failures and skips, benches of earlier commits, and a comparison
with an explanation. Run as a program it writes such a store, to look at the dashboard by hand.
"""

from __future__ import annotations

import dataclasses
import json
import math
import random
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from results import Attachment, Build, Environment, Measurement, Run, Sample, Store, open_store

EPOCH = datetime(2026, 5, 4, 9, 30, tzinfo=timezone.utc)
MIB = 1 << 20
ENVIRONMENT = Environment(
    "x86_64", "6.1.0-18-amd64", "AMD EPYC 7B13", 2, 8 << 30, 4096, "madvise", "performance", "2.36-9+deb12u10",
    "glibc.cpu.hwcaps=-AVX512F", {"perf": "6.1", "valgrind": "3.19.0", "hyperfine": "1.15.0", "python": "3.11.2"},
)  # fmt: skip
REVISIONS = tuple(f"{number:02x}" * 20 for number in (0xA1, 0xB2, 0xC3, 0xD4, 0xE5))
ROUNDS = 16


@dataclass(frozen=True)
class Allocator:
    """An arm of the bench: how many times the best one's cost and memory it needs."""

    name: str
    arm: str
    revision: str
    cost: float
    memory: float
    keeps: float
    """Which part of the peak is left at the end."""


ALLOCATORS = (
    Allocator("ebb", "tree", REVISIONS[4], 1.00, 1.00, 0.08),
    Allocator("ebb", "pin", REVISIONS[2], 1.012, 1.02, 0.09),
    Allocator("glibc", "reference", "2.36-9", 4.10, 1.08, 0.93),
    Allocator("jemalloc", "reference", "5.3.0-1", 2.35, 1.19, 0.35),
    Allocator("mimalloc", "reference", "2.0.9", 1.42, 1.15, 0.52),
    Allocator("scudo", "reference", "14.0.6-12", 5.62, 1.31, 0.71),
    Allocator("tbbmalloc", "reference", "2021.8.0-2", 1.71, 1.42, 0.98),
    Allocator("tcmalloc", "reference", "2.10-1", 2.02, 1.27, 0.97),
)
WORKLOADS = (
    ("churn", "default", 31.2e6, 3 * MIB), ("churn", "small", 29.6e6, 2 * MIB), ("buffers", "default", 1.9e6, 96 * MIB),
    ("teardown", "default", 12.4e6, 41 * MIB), ("remote", "default", 48.0e6, 17 * MIB), ("idle", "default", 88e6, 262 * MIB),
    ("startup", "default", 0.17e6, 1.2 * MIB), ("sqlite", "default", 640e6, 24 * MIB),
)  # fmt: skip


def fill(store: Store) -> Run:
    """Add everything to a store and return the newest bench."""
    dice = random.Random(20260504)
    for age, revision in enumerate(REVISIONS[:4]):
        _bench_of_commit(
            store, dice, EPOCH - timedelta(days=8 - 2 * age), revision, 1.0 + (0.05, 0.03, 0.012, 0.02)[age]
        )
    _compare(store, dice)
    return _bench(store, dice)


def _bench(store: Store, dice: random.Random) -> Run:
    run = Run("bench", "make bench", REVISIONS[4], ENVIRONMENT, EPOCH)
    store.begin_run(run)
    position = 0
    for workload, variant, instructions, memory in WORKLOADS:
        for allocator in ALLOCATORS:
            for provider, repeats in (("callgrind", 1), ("smaps", 3), ("hyperfine", 1)):
                for repeat in range(repeats):
                    store.record(
                        measure(
                            run, allocator, workload, variant, provider, dice, instructions, memory, repeat, position
                        )
                    )
                    position += 1
    for allocator in ALLOCATORS:
        store.record(measure(run, allocator, "micro", "default", "gbench", dice, 0.0, 0.0, 0, position))
        position += 1
    store.finish_run(run.id, "finished")
    return run


def measure(
    run: Run, allocator: Allocator, workload: str, variant: str, provider: str, dice: random.Random,
    instructions: float, memory: float, repeat: int, position: int,
) -> Measurement:  # fmt: skip
    """Return one measurement; a few fixed ones of them failed or were skipped."""
    status, reason = "ok", ""
    if (allocator.name, workload, provider) == ("scudo", "buffers", "smaps"):
        status, reason = "failed", "The workload ended by signal 11 after checkpoint 4; run it again under gdb."
    if (allocator.name, provider) == ("tbbmalloc", "callgrind"):
        status, reason = "skipped", "valgrind can't reserve the 4 GiB that tbbmalloc wants; raise ulimit -v."
    samples: tuple[Sample, ...] = ()
    if status == "ok":
        samples = _samples(provider, allocator, dice, instructions, memory)
    return Measurement(
        run_id=run.id,
        build=Build(allocator.name, allocator.revision, compiler="g++ 12.2.0", flags="-O2", sha256=allocator.revision),
        workload=workload, variant=variant, profile="quick", provider=provider, arm=allocator.arm, status=status,
        reason=reason, repeat=repeat, position=position, command=f"build/release/workloads/{workload} --rounds {ROUNDS}",
        active_allocator=f"lib{allocator.name}.so", checksum="0f1e2d3c4b5a6978", operations=200_000,
        modes={"heap": "native" if allocator.name in ("mimalloc", "jemalloc") else "emulated"} if workload == "teardown" else {},
        started_at=run.started_at + timedelta(seconds=position), duration_s=0.2 + dice.random(), samples=samples,
    )  # fmt: skip


def _samples(
    provider: str, allocator: Allocator, dice: random.Random, instructions: float, memory: float
) -> tuple[Sample, ...]:
    """Return samples in the form in which each provider gives them."""
    if provider == "callgrind":
        noise = dice.uniform(0.93, 1.07)
        total = round(instructions * (1 + (allocator.cost - 1) * noise))
        shares = (("main", 0.3), (f"{allocator.name}_malloc", 0.4), (f"{allocator.name}_free", 0.3))
        functions = [
            Sample("function_instructions", "count", round(total * share), detail=name) for name, share in shares
        ]
        return (Sample("instructions", "count", total), *functions)
    if provider == "hyperfine":
        wall = instructions / 2.4e9 * (0.7 + 0.3 * allocator.cost)
        return tuple(Sample("wall_s", "s", wall * dice.uniform(0.97, 1.04), n, "run") for n in range(5))
    if provider == "gbench":
        return tuple(
            Sample("latency_ns", "ns", 3.1 * allocator.cost * size**0.1 * dice.uniform(0.98, 1.02), n, "repetition",
                   detail=f"malloc_free/{size}")
            for size in (16, 64, 1024, 65536) for n in range(3)
        )  # fmt: skip
    series: list[Sample] = []
    for checkpoint in range(ROUNDS):
        growth = 1 - math.exp(-checkpoint / 1.8)
        level = (
            growth if checkpoint < 12 else allocator.keeps + (growth - allocator.keeps) * math.exp(11.5 - checkpoint)
        )
        resident = round(memory * allocator.memory * level * dice.uniform(0.99, 1.01) + MIB)
        live = round(memory * 0.9 * growth) if checkpoint < 12 else 0
        place = (checkpoint, "round" if checkpoint < 12 else "idle", checkpoint * 0.25)
        series += [Sample("rss_bytes", "byte", resident, *place), Sample("live_bytes", "byte", live, *place)]
        series.append(Sample("round_peak_rss_bytes", "byte", round(resident * 1.01), *place))
        lazy = round(resident * 0.2) if allocator.name == "jemalloc" else 0
        series.append(Sample("lazyfree_bytes", "byte", lazy, *place))
    peak = max(sample.value for sample in series if sample.metric == "round_peak_rss_bytes")
    return (*series, Sample("peak_rss_bytes", "byte", peak), Sample("end_rss_bytes", "byte", resident))


def _bench_of_commit(store: Store, dice: random.Random, when: datetime, revision: str, factor: float) -> None:
    run = Run("bench", "make bench", revision, ENVIRONMENT, when)
    store.begin_run(run)
    arm = "pin" if revision == REVISIONS[2] else "tree"
    allocator = Allocator("ebb", arm, revision, factor, factor, 0.1)
    for position, (workload, variant, instructions, memory) in enumerate(WORKLOADS):
        for provider in ("callgrind", "smaps"):
            store.record(
                measure(run, allocator, workload, variant, provider, dice, instructions * factor, memory, 0, position)
            )
    store.finish_run(run.id, "finished")


def _compare(store: Store, dice: random.Random) -> None:
    run = Run("compare", "make compare A=c3c3c3c B=e5e5e5e", REVISIONS[4], ENVIRONMENT, EPOCH - timedelta(hours=3))
    store.begin_run(run)
    arms = (
        Allocator("ebb", REVISIONS[2][:12], REVISIONS[2], 1.02, 1.03, 0.1),
        Allocator("ebb", "tree", REVISIONS[4], 1.0, 1.0, 0.08),
        Allocator("glibc", "reference", "2.36-9", 4.1, 1.08, 0.93),
    )
    position = 0
    for workload, variant, instructions, memory in WORKLOADS[:4]:
        for allocator in arms:
            for provider in ("callgrind", "smaps"):
                store.record(
                    measure(run, allocator, workload, variant, provider, dice, instructions, memory, 0, position)
                )
                position += 1
    verdicts = Attachment("verdicts", json.dumps(VERDICTS).encode())
    evidence = tuple(Attachment("explanation", json.dumps(each).encode()) for each in EXPLANATIONS)
    judged = measure(run, arms[1], "churn", "default", "judge", dice, 0.0, 0.0, 0, position)
    store.record(dataclasses.replace(judged, samples=(), attachments=(verdicts, *evidence)))
    store.finish_run(run.id, "finished")


def _verdict(**fields: Any) -> dict[str, Any]:
    return {
        "workload": "churn", "variant": "default", "metric": "instructions", "provider": "callgrind",
        "outcome": "improved", "figure": -1.87, "unit": "instructions", "before": 31_790_000.0, "after": 31_195_000.0,
        "threshold": {"value": 0.05, "unit": "%", "origin": "thresholds.toml, section instructions"}, "interval": None,
        "p_value": None, "samples": [1, 1], "reason": "", "label": "churn", "is_regression": False,
        "command": "./tidemark compare c3c3c3c tree --workload churn", **fields,
    }  # fmt: skip


VERDICTS = [
    _verdict(),
    _verdict(
        metric="rss_bytes", provider="smaps", outcome="growing", figure=15_000.0, interval=[12_000.0, 18_400.0],
        unit="bytes", before=4.1 * MIB, after=4.9 * MIB, is_regression=True, samples=[5, 5],
        threshold={"value": 4096.0, "unit": "bytes/round", "origin": "0.1 % of the pin a round"},
    ),
    _verdict(metric="wall_s", provider="hyperfine", outcome="cannot tell", figure=None, before=None, after=None,
             threshold=None, reason="The noise of five pairs is larger than the threshold; run more."),
]  # fmt: skip
EXPLANATIONS: list[dict[str, Any]] = [
    {
        "version": 1, "kind": "instructions", "workload": "churn",
        "before": {"name": "c3c3c3c3c3c3", "per_operation": 31.0, "operations": 200000},
        "after": {"name": "tree", "per_operation": 30.0, "operations": 200000}, "delta_per_operation": -1.0,
        "sentences": ["ebb_free costs less a call: −1.000 (18.000 → 17.000)", "nothing else moved"],
        "functions": [
            {"function": "ebb_free", "object": "libebb.so", "change": "costs less a call", "before": 18.0, "after": 17.0,
             "delta": -1.0, "calls_before": 0.5, "calls_after": 0.5, "by_calls": 0.0, "by_cost": -1.0},
        ],
        "source_functions": [{"function": "page_push", "before": 6.0, "after": 5.0, "delta": -1.0}],
        "lines": [
            {"function": "ebb_free", "file": "allocator/heap/free.cc", "line_before": 40, "line_after": None,
             "text": "  if (block == nullptr) return;", "before": 1.0, "after": 0.0, "delta": -1.0},
        ],
        "listings": [
            {"function": "ebb_free", "executed_before": 18.0, "executed_after": 17.0, "rows": [
                {"before": {"address": 16, "text": "test %rdi,%rdi", "executed": 1.0}, "after": None, "mark": "<"},
                {"before": {"address": 19, "text": "mov (%rip),%rax", "executed": 1.0},
                 "after": {"address": 16, "text": "mov (%rip),%rax", "executed": 1.0}, "mark": " "},
            ]},
        ],
    },
    {
        "version": 1, "kind": "memory", "workload": "churn", "before": {"name": "c3c3c3c3c3c3"}, "after": {"name": "tree"},
        "sentences": ["anonymous_bytes steps by +0.80 MiB at checkpoint 5"],
        "categories": [
            {"metric": "anonymous_bytes", "shape": "step", "begins_at": 5, "ends_at": 5, "level": 0.8 * MIB,
             "per_checkpoint": 0.0, "final": 0.8 * MIB},
        ],
    },
    {"version": 2, "kind": "energy", "joules": [{"place": "package", "before": 3.5, "after": 3.25}],
     "notes": {"governor": "performance"}},
]  # fmt: skip

if __name__ == "__main__":
    with open_store(sys.argv[1]) as target:
        print(fill(target).id)
