"""From measurements to one figure a cell: medians over repeats, peaks and ends of series.

Who calls it: matrix, comparison, workload pages. Pure, safe from any thread.

Invariants
1. A figure is keyed by its provider too: figures of different providers never meet in one comparison.
2. Every measurement ends up in a cell, also the failed and the skipped ones.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dashboards.arms import arm_key
from results.records import Measurement, Sample

WALL = "wall_s"
REGION = "region_s"
PEAK = "peak_rss_bytes"
END = "end_rss_bytes"
RESIDENT = "rss_bytes"
ROUND_PEAK = "round_peak_rss_bytes"

REPEAT_LABELS = frozenset({"run", "repetition"})
"""Where a provider repeats by itself, `checkpoint` counts the repeats and is no place in a series."""

TITLES = {
    "instructions": "Instructions",
    WALL: "Wall clock",
    REGION: "Wall clock of the region of interest",
    PEAK: "Peak resident memory",
    END: "Resident memory at the end",
}
"""The metrics of the matrix, in its order."""

_PROMISED = {
    "callgrind": ("instructions",),
    "perf": ("instructions",),
    "hyperfine": (WALL,),
    "smaps": (PEAK, END),
}
"""What a provider would have given where it failed."""

_SMALLER_WORDS = frozenset(
    {"bytes", "ns", "us", "ms", "s", "instructions", "cycles", "faults", "switches", "misses", "processes"}
)

Case = tuple[str, str]
"""A workload and its variant."""


@dataclass
class Cell:
    """What one arm gave for one metric: the values of its valid measurements, and those that gave none."""

    unit: str = ""
    values: list[float] = field(default_factory=list)
    broken: list[Measurement] = field(default_factory=list)
    emulated: set[str] = field(default_factory=set)

    @property
    def median(self) -> float | None:
        """The median of the values; None without one."""
        return statistics.median(self.values) if self.values else None


@dataclass(frozen=True)
class MetricKey:
    """A metric as one provider sees it."""

    metric: str
    provider: str

    @property
    def title(self) -> str:
        """The metric's name in headings."""
        return TITLES.get(self.metric, self.metric.replace("_", " "))


Cells = dict[MetricKey, dict[Case, dict[tuple[str, str], Cell]]]


def summarize(measurements: Iterable[Measurement]) -> Cells:
    """Return the cells by metric and provider, workload and variant, arm."""
    cells: Cells = defaultdict(lambda: defaultdict(lambda: defaultdict(Cell)))
    for measurement in measurements:
        case = (measurement.workload, measurement.variant)
        if measurement.status != "ok":
            for metric in _PROMISED.get(measurement.provider, ()):
                cells[MetricKey(metric, measurement.provider)][case][arm_key(measurement)].broken.append(measurement)
            continue
        for metric, (unit, values) in scalars(measurement).items():
            cell = cells[MetricKey(metric, measurement.provider)][case][arm_key(measurement)]
            cell.unit = unit
            cell.values += values
            cell.emulated |= {name for name, mode in measurement.modes.items() if mode == "emulated"}
    return cells


def scalars(measurement: Measurement) -> Mapping[str, tuple[str, list[float]]]:
    """Return a measurement's figures of the whole run: metric to (unit, values of its repeats).

    Memory's peak and end are read off the series where the provider did not give them.
    """
    found: dict[str, tuple[str, list[float]]] = {}
    for sample in measurement.samples:
        if sample.detail is None and is_whole(sample):
            found.setdefault(sample.metric, (sample.unit, []))[1].append(sample.value)
    resident = [sample for sample in measurement.samples if sample.metric in (RESIDENT, ROUND_PEAK)]
    series = [sample for sample in resident if not is_whole(sample)]
    if series and PEAK not in found:
        found[PEAK] = (series[0].unit, [max(sample.value for sample in series)])
    ends = [sample for sample in series if sample.metric == RESIDENT]
    if ends and END not in found:
        found[END] = (ends[0].unit, [max(ends, key=lambda sample: sample.checkpoint or 0).value])
    return found


def is_whole(sample: Sample) -> bool:
    """Say whether a sample is about the whole run, once or repeated, and no point of a series."""
    return sample.checkpoint is None or sample.label in REPEAT_LABELS


def is_smaller_better(metric: str) -> bool:
    """Say whether less of a metric is better, as far as its name tells; rates and counts of work are left alone."""
    words = metric.split("_")
    return "per" not in words and not _SMALLER_WORDS.isdisjoint(words)


def metric_order(key: MetricKey) -> tuple[int, str, str]:
    """Sort key of metrics: those of the matrix in its order, then all others by name."""
    known = list(TITLES)
    return (known.index(key.metric) if key.metric in known else len(known)), key.metric, key.provider


def label(case: Case) -> str:
    """Return a workload's name in tables; a variant that is not the default is added to it."""
    workload, variant = case
    return workload if variant in ("", "default") else f"{workload}:{variant}"
