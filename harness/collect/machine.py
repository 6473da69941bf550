"""What this machine can measure, what it cannot, and what would help: the findings behind `tidemark doctor`.

Each check is a function that reads one thing and returns one finding; none changes anything. The noise check runs a
fixed piece of work of our own, so that it needs no workload and no allocator.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Literal

from harness.build.arms import package_version
from harness.collect import environment
from harness.collect.providers import all_providers
from harness.model.allocator import AllocatorConfig

Level = Literal["good", "note", "bad"]

NOISE_RUNS = 15
NOISE_WORK = 200_000
NOISE_GOOD = 0.02
"""Relative spread (median absolute deviation) of the noise work below which timings are called quiet."""
COUNT_NOISE_GOOD = 5e-4
"""Relative difference of two counts of one small program from which on exact counts are in doubt: the gate's limit.
Its start-up, which no region of interest holds, differed by up to 24 of 118,000 instructions on a busy machine."""
COUNT_TIMEOUT_S = 60.0
FREE_DISK_MIN_BYTES = 2 << 30


@dataclass(frozen=True)
class Finding:
    """One thing about the machine."""

    subject: str
    level: Level
    state: str
    help: str = ""
    """What would make it better; empty when nothing is to be done."""


def findings(allocators: dict[str, AllocatorConfig], build_folder: Path) -> list[Finding]:
    """Return every finding about this machine."""
    checks: list[Callable[[], Finding]] = [
        _paranoid, _thp, _governor, _randomisation, _overcommit, load, _steal, noise, noise_of_counts,
        lambda: _disk(build_folder),
    ]  # fmt: skip
    return [*_providers(), *(check() for check in checks), *_tools(), *_allocators(allocators)]


def _providers() -> list[Finding]:
    found = []
    for name, provider in all_providers().items():
        probe = provider.probe()
        level: Level = "bad" if not probe.available else "note" if "only" in probe.sentence else "good"
        # A probe that has something to advise says it behind a colon (not available) or a semicolon (in part).
        state, _, remedy = probe.sentence.partition({"bad": ":", "note": "; ", "good": "\0"}[level])
        found.append(Finding(f"provider {name}", level, state.strip(), remedy.strip()))
    return found


def _paranoid() -> Finding:
    value = environment.system_setting("kernel/perf_event_paranoid")
    if not value:
        return Finding("perf_event_paranoid", "bad", "the kernel has no perf events", "use callgrind for counts")
    if int(value) <= 2 or os.geteuid() == 0:
        return Finding("perf_event_paranoid", "good", f"{value}: counting in user mode is allowed")
    return Finding(
        "perf_event_paranoid", "bad", f"{value}: counting is forbidden", "sysctl kernel.perf_event_paranoid=2"
    )


def _thp() -> Finding:
    mode = environment.thp_mode()
    if mode == "always":
        return Finding(
            "transparent huge pages", "note", "always: resident memory is larger than with madvise",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, to compare with other machines",
        )  # fmt: skip
    return Finding("transparent huge pages", "good", mode)


def _governor() -> Finding:
    value = environment.governor()
    if value in ("performance", "unknown"):
        state = "not visible (virtual machine)" if value == "unknown" else value
        return Finding("frequency governor", "good" if value == "performance" else "note", state)
    return Finding(
        "frequency governor", "note", f"{value}: timings follow the load", "cpupower frequency-set -g performance"
    )


def _randomisation() -> Finding:
    value = environment.system_setting("kernel/randomize_va_space")
    if value == "0":
        return Finding(
            "ASLR",
            "note",
            "off for the whole machine",
            "sysctl kernel.randomize_va_space=2: counting switches it off by itself",
        )
    return Finding("ASLR", "good", f"{value or 'unknown'}: on, and switched off by the launcher where counts need it")


def _overcommit() -> Finding:
    value = environment.system_setting("vm/overcommit_memory")
    if value == "2":
        return Finding(
            "overcommit",
            "note",
            "2: large reservations are refused",
            "sysctl vm.overcommit_memory=0, to compare with other machines",
        )
    return Finding("overcommit", "good", f"{value or 'unknown'}: large reservations are allowed")


def load() -> Finding:
    """Say whether other work runs on this machine now."""
    busy, processors = os.getloadavg()[0], os.cpu_count() or 1
    if busy > processors * 0.5:
        return Finding(
            "load",
            "note",
            f"{busy:.2f} on {processors} processors: timings will be noisy",
            "wait for other work to end",
        )
    return Finding("load", "good", f"{busy:.2f} on {processors} processors")


def _steal() -> Finding:
    try:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        ticks = [int(word) for word in words]
        share = ticks[7] / max(1, sum(ticks[:8]))
    except (OSError, ValueError, IndexError):
        return Finding("stolen time", "note", "unknown")
    if share > 0.01:
        return Finding(
            "stolen time", "note", f"{share:.1%} since boot: the host is busy", "trust counts more than timings here"
        )
    return Finding("stolen time", "good", f"{share:.2%} since boot")


def _disk(folder: Path) -> Finding:
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    state = f"{free / (1 << 30):.1f} GiB free"
    if free < FREE_DISK_MIN_BYTES:
        return Finding("disk", "bad", state, "free some space: builds and profiles need about 2 GiB")
    return Finding("disk", "good", state)


def noise() -> Finding:
    """Time one fixed piece of work several times and return its spread."""
    times = []
    for _ in range(NOISE_RUNS):
        begin = time.perf_counter()
        total = 0
        for number in range(NOISE_WORK):
            total += number
        times.append(time.perf_counter() - begin)
    middle = statistics.median(times)
    spread = statistics.median(abs(value - middle) for value in times) / middle
    worst = max(times) / middle - 1
    state = f"{spread:.2%} typical, {worst:.1%} worst of {NOISE_RUNS} runs of {middle * 1e3:.1f} ms"
    if spread > NOISE_GOOD:
        return Finding(
            "noise of timings",
            "note",
            state,
            "repeat more (--repeat 5 or more) and end other work; counts are not affected",
        )
    return Finding("noise of timings", "good", state)


def noise_of_counts() -> Finding:
    """Count one program's instructions twice, as every count is taken, and return how far the counts differ."""
    subject = "noise of counts"
    tools = [shutil.which(tool) for tool in ("setarch", "valgrind")]
    if not all(tools):
        return Finding(subject, "bad", "not measured: valgrind or setarch is missing", "sh harness/setup/install")
    command = [str(tools[0]), "-R", str(tools[1]), "--tool=callgrind", "--callgrind-out-file=/dev/null", "/bin/true"]
    counts = []
    for _ in range(2):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=COUNT_TIMEOUT_S,
                                  env={"PATH": os.defpath, "GLIBC_TUNABLES": environment.pinned_tunables()})  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return Finding(subject, "bad", f"not measured: {error}", "sh harness/setup/install")
        found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
        if found is None:
            said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            return Finding(subject, "bad", f"not measured, callgrind said: {said}", "sh harness/setup/install")
        counts.append(int(found.group(1)))
    difference = abs(counts[1] - counts[0])
    state = f"{difference} of {counts[0]:,} instructions between two runs"
    if difference > counts[0] * COUNT_NOISE_GOOD:
        return Finding(subject, "note", state, "look for what differs from run to run: ASLR, the environment's size")
    return Finding(subject, "good", state)


def _tools() -> list[Finding]:
    found = []
    for tool in environment.TOOLS:
        version = environment.tool_version(tool)
        level: Level = "good" if version else "note"
        found.append(
            Finding(
                f"version of {tool}", level, version or "not installed", "" if version else "sh harness/setup/install"
            )
        )
    found.append(
        Finding("version of libc", "good", package_version("libc6") or os.confstr("CS_GNU_LIBC_VERSION") or "unknown")
    )
    return found


def _allocators(allocators: dict[str, AllocatorConfig]) -> list[Finding]:
    found = []
    for config in allocators.values():
        if config.kind != "preload":
            continue
        path = config.object_path()
        if path is None:
            state, _, remedy = config.missing_sentence().partition(":")
            found.append(Finding(f"allocator {config.name}", "note", state, remedy.strip()))
        else:
            found.append(Finding(f"allocator {config.name}", "good", package_version(config.package) or str(path)))
    return found
