"""What the scavenger costs in throughput: `churn`, `remote` and `park` with it and with EBB_SCAVENGER=off.

Without a scavenger parking is of no use, so `park` is compared with the same loop that does not park.

    /usr/bin/python3 tests/allocator/scavenger/measure_cost.py [pairs]

Interleaved pairs, so that the machine's other load meets both sides alike. Printed for each workload are the medians
of the pairs' ratios, on to off, with their 95 % intervals: of the time of the region of interest, and of the processor
time of the whole process, the scavenger's thread included. Nothing is judged here: times are for a quiet machine.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import binom

BUILD = Path(os.environ.get("TIDEMARK_BUILD", Path(__file__).resolve().parents[3] / "build" / "release"))
WORKLOADS: dict[str, tuple[str, ...]] = {
    "churn": ("--iterations", "2000000"),
    "remote": ("--blocks", "4000000"),
    "park": ("--wakeups", "20000"),
}
WITHOUT_SCAVENGER: dict[str, tuple[str, ...]] = {"park": ("--park", "no")}
"""Further arguments of that side."""
LEAST_PAIRS = 8
"""Fewer have no 95 % interval that leaves out the extremes."""
TIMEOUT_S = 60


@dataclass(frozen=True)
class Cost:
    """Seconds of one run: of the region of interest, and of processors."""

    region_s: float
    processor_s: float


def run_once(workload: str, scavenger: str) -> Cost:
    """Run a workload under the library of the build folder; raises CalledProcessError when it fails."""
    environment = {
        "PATH": os.defpath, "LC_ALL": "C", "LD_PRELOAD": str(BUILD / "libebb.so"), "EBB_SCAVENGER": scavenger,
    }  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    further = WITHOUT_SCAVENGER.get(workload, ()) if scavenger == "off" else ()
    command = [str(BUILD / "workloads" / workload), *WORKLOADS[workload], *further]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(json.loads(ran.stdout.splitlines()[-1])["metrics"]["region_s"], used)


def median_with_interval(ratios: list[float]) -> tuple[float, float, float]:
    """Return the median and the order statistics that enclose it in 95 % of all samples, whatever the distribution."""
    ordered = sorted(ratios)
    low = max(int(binom.ppf(0.025, len(ordered), 0.5)) - 1, 0)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return median, ordered[low], ordered[-1 - low]


def shown(ratios: list[float]) -> str:
    """Return a median and its interval as changes in per cent."""
    median, low, high = (100 * (ratio - 1) for ratio in median_with_interval(ratios))
    return f"{median:+.2f} % [{low:+.2f}, {high:+.2f}]"


def main() -> None:
    """Measure and print."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    if pairs < LEAST_PAIRS:
        sys.exit(f"{pairs} pairs are too few: give at least {LEAST_PAIRS}")
    for workload in WORKLOADS:
        regions, processors = [], []
        for pair in range(pairs):
            order = ("on", "off") if pair % 2 == 0 else ("off", "on")
            costs = {scavenger: run_once(workload, scavenger) for scavenger in order}
            regions.append(costs["on"].region_s / costs["off"].region_s)
            processors.append(costs["on"].processor_s / costs["off"].processor_s)
        print(f"{workload}: region {shown(regions)}, processors {shown(processors)}, {pairs} pairs", flush=True)


if __name__ == "__main__":
    main()
