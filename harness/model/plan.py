"""The plan of a run: which arm runs which workload under which provider, in which order.

Order is ABBA: within one workload and provider the arms run forwards in even repeats and backwards in odd ones, so
that a slow drift of the machine hits every arm alike. The plan is plain data; `harness.collect.session` runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Mapping, Sequence

from harness.model.arm import Arm
from harness.model.workload import Profile, Variant, Workload

PROVIDER_OF_METRIC = {
    "instructions": "callgrind",
    "rss_bytes": "smaps",
    "wall_s": "hyperfine",
    "latency_ns": "gbench",
}
"""Default provider of each metric a manifest may name; `perf` takes over `instructions` where there is a PMU."""


@dataclass(frozen=True)
class Job:
    """One execution: becomes exactly one measurement, whatever happens."""

    arm: Arm
    workload: Workload
    variant: Variant
    provider: str
    profile: Profile
    repeat: int
    position: int

    def describe(self) -> str:
        """Return the job in a few words, for progress and messages."""
        return f"{self.workload.label(self.variant)} under {self.arm.name} by {self.provider}"


def providers_for(workload: Workload, counter: str = "callgrind") -> tuple[str, ...]:
    """Return the providers that the metrics of a workload ask for.

    `counter` is the provider of instruction counts on this machine. Metrics that a workload reports itself
    (at its checkpoints) need no provider of their own: smaps reads them on the way. An app times itself, since
    its driver is no part of what is measured.
    """
    table = {**PROVIDER_OF_METRIC, "instructions": counter}
    if workload.kind == "app":
        table = {**table, "instructions": "callgrind", "wall_s": "smaps"}
    wanted = (table.get(metric, "smaps") for metric in workload.metrics)
    return tuple(dict.fromkeys(wanted))


def unit_of(metric: str) -> str:
    """Return the unit that a metric's name carries: `rss_bytes`, `handover_ns_p999`, `wall_s`."""
    parts = metric.split("_")
    if "bytes" in parts:
        return "byte"
    if "ns" in parts:
        return "ns"
    if parts[-1] == "ratio":
        return "ratio"
    if parts[-1] == "s" or "s" in parts[1:]:
        return "s"
    return "count"


def build_plan(
    arms: Sequence[Arm],
    selection: Iterable[tuple[Workload, Variant]],
    providers: Sequence[str] | None = None,
    profile: Profile = "quick",
    repeats: int | Mapping[str, int] = 1,
    counter: str = "callgrind",
    exact_repeats: int = 1,
) -> list[Job]:
    """Return the jobs of arms × selection × providers.

    `providers` None means those each workload's metrics ask for. Providers that count exactly run
    `exact_repeats` times, all others `repeats` times, which may differ by provider (once where it does not say), and
    smaps as often as the workload wants at least.
    """
    jobs: list[Job] = []
    for workload, variant in selection:
        for provider in providers if providers is not None else providers_for(workload, counter):
            noisy = repeats if isinstance(repeats, int) else repeats.get(provider, 1)
            if provider == "smaps":
                noisy = max(noisy, workload.memory_runs)
            times = exact_repeats if provider == "callgrind" else noisy
            for repeat in range(times):
                order = list(arms) if repeat % 2 == 0 else list(reversed(arms))
                for arm in order:
                    jobs.append(Job(arm, workload, variant, provider, profile, repeat, len(jobs)))
    return jobs
