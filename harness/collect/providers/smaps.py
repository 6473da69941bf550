"""Provider `smaps`: resident memory at every checkpoint, the peak between them, and the resources used.

Reads /proc/<pid>/smaps_rollup while the workload waits at a checkpoint; the high-water mark is reset there, so that
every round has a peak of its own (with an allocator that purges in the background a single sample can fall into a
dip, a round's peak cannot). The peak of a single process is exact, from the kernel's mark; of a tree of processes it
is the largest of the checkpoints and of samples taken every SAMPLE_INTERVAL_S.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

from harness.collect.events import Checkpoint, Start
from harness.collect.execution import Usage, execute
from harness.collect.launch import prepare
from harness.collect.memory import MemoryReading, descendants, high_water_bytes, read_tree, reset_high_water
from harness.collect.providers.base import Context, Probe, Reading, checkpoint_sample, own_samples
from harness.collect.validity import check
from harness.model.plan import Job
from harness.model.workload import Workload
from results.records import Sample

SAMPLE_INTERVAL_S = 0.05
"""Between samples of a tree: reading takes about 2.3 ms a GB and holds the map lock, so not more often."""


class SmapsProvider:
    """Resident memory of a native execution."""

    name = "smaps"
    alone = True

    def probe(self) -> Probe:
        """Say whether this kernel has smaps_rollup."""
        if read_tree(os.getpid()) is None:
            return Probe(False, "smaps needs /proc/<pid>/smaps_rollup: Linux 4.14 or newer with /proc mounted.")
        return Probe(True, "resident memory at checkpoints, exact; the peak from the kernel's high-water mark")

    def accepts(self, workload: Workload) -> str:
        """Refuse benchmarks: they have no checkpoints."""
        return "gbench programs have no checkpoints; use --provider gbench." if workload.kind == "gbench" else ""

    def measure(self, job: Job, context: Context) -> Reading:
        """Run the job natively and read its memory."""
        series = _Series()
        sampler = _TreeSampler(series)
        launch = prepare(job, context.layout, context.launcher, counting=False, temporary=context.temporary)
        try:
            execution = execute(
                launch, context.scratch, context.stop, on_start=sampler.begin, on_checkpoint=series.at_checkpoint
            )
        finally:
            sampler.end()
        outcome = check(execution, job)
        assert execution.usage is not None
        samples = own_samples(execution.events, outcome)
        samples += series.samples
        samples += _resources(execution.usage, job)
        samples += _ends(series, samples, execution.usage, job)
        return Reading(execution.command, outcome, tuple(samples))


@dataclass
class _Series:
    """The readings of one execution. `peak` is shared with the sampler and guarded by `lock`."""

    samples: list[Sample] = field(default_factory=list)
    peak: int = 0
    was_tree: bool = False
    last_rss: int | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def at_checkpoint(self, start: Start, event: Checkpoint) -> None:
        """Read the memory of the waiting workload."""
        if event.live_bytes is not None:
            self._add(event, "live_bytes", event.live_bytes)
        if start.pid <= 0:
            self._own_reading(event)
            return
        reading = read_tree(start.pid)
        if reading is None:
            return
        high_water = high_water_bytes(start.pid)
        reset_high_water(start.pid)
        self.last_rss = reading.rss
        self.note(reading.rss, reading.processes > 1)
        for metric, value in _figures(reading).items():
            self._add(event, metric, value)
        if high_water is not None and reading.processes == 1:
            round_peak = max(high_water, reading.rss)
            self.note(round_peak, False)
            self._add(event, "round_peak_rss_bytes", round_peak)

    def note(self, rss: int, tree: bool) -> None:
        """Take a figure into the peak."""
        with self.lock:
            self.peak = max(self.peak, rss)
            self.was_tree = self.was_tree or tree

    def _own_reading(self, event: Checkpoint) -> None:
        """No process lives at the checkpoint: the driver of the app has read its memory itself."""
        if "rss_bytes" in event.metrics:
            self.last_rss = int(event.metrics["rss_bytes"])
            self.note(self.last_rss, False)

    def _add(self, event: Checkpoint, metric: str, value: float) -> None:
        self.samples.append(checkpoint_sample(event, metric, value))


class _TreeSampler:
    """Samples a tree of processes in the background, between checkpoints; idle while there is one process."""

    def __init__(self, series: _Series) -> None:
        self._series = series
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, start: Start) -> None:
        """Start sampling the tree below the workload's process."""
        if start.pid > 0 and self._thread is None:
            self._thread = threading.Thread(target=self._loop, args=(start.pid,), daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Stop sampling and wait for the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _loop(self, pid: int) -> None:
        while not self._ended.wait(SAMPLE_INTERVAL_S):
            if len(descendants(pid)) > 1:
                reading = read_tree(pid)
                if reading is not None:
                    self._series.note(reading.rss, reading.processes > 1)


def _figures(reading: MemoryReading) -> dict[str, int]:
    return {
        "rss_bytes": reading.rss,
        "rss_less_lazyfree_bytes": max(0, reading.rss - reading.lazyfree),
        "pss_bytes": reading.pss,
        "anonymous_bytes": reading.anonymous,
        "lazyfree_bytes": reading.lazyfree,
        "anon_huge_bytes": reading.anon_huge,
        "private_bytes": reading.private,
        "swap_bytes": reading.swap,
        "processes": reading.processes,
    }


def _resources(usage: Usage, job: Job) -> list[Sample]:
    """Return what the kernel charged to the whole process; an app's driver is no part of what is measured."""
    if job.workload.kind == "app":
        return []
    return [
        Sample("process_wall_s", "s", usage.wall_s),
        Sample("user_s", "s", usage.user_s),
        Sample("system_s", "s", usage.system_s),
        Sample("process_minor_faults", "count", usage.minor_faults),
        Sample("process_major_faults", "count", usage.major_faults),
        Sample("context_switches", "count", usage.voluntary_switches + usage.involuntary_switches),
    ]


def _ends(series: _Series, reported: list[Sample], usage: Usage, job: Job) -> list[Sample]:
    """Return the peak and the last reading, where the workload has not reported them itself."""
    named = {sample.metric for sample in reported if sample.checkpoint is None}
    samples = []
    if "peak_rss_bytes" not in named:
        # A tree's peak is that of the sums; for a single process the kernel's own mark is exact.
        single = 0 if series.was_tree or job.workload.kind == "app" else usage.max_rss_bytes
        samples.append(Sample("peak_rss_bytes", "byte", float(max(series.peak, single))))
    if series.last_rss is not None:
        samples.append(Sample("end_rss_bytes", "byte", float(series.last_rss)))
    return samples
