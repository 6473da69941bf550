"""The one figure a table shows for a cell, taken from the samples of its measurements.

A figure over several repeats is the median; a figure that could not be measured keeps the reason. Pure.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Iterable, Mapping, Sequence

from harness.model.plan import unit_of
from results.records import Measurement


@dataclass(frozen=True)
class Column:
    """A column of the tables: which metric of which providers, in order of preference."""

    key: str
    title: str
    sources: tuple[tuple[str, str], ...]
    """(provider, metric) pairs; the first that has samples counts."""
    unit: str


COLUMNS = (
    Column("instructions", "instructions", (("perf", "instructions"), ("callgrind", "instructions")), "count"),
    Column("wall_s", "wall", (("hyperfine", "wall_s"), ("smaps", "wall_s"), ("smaps", "region_s")), "s"),
    Column("task_clock_s", "CPU", (("perf", "task_clock_s"),), "s"),
    Column(
        "page_faults", "faults",
        (("perf", "page_faults"), ("smaps", "faults_minor"), ("smaps", "process_minor_faults")), "count",
    ),
    Column("peak_rss_bytes", "peak RSS", (("smaps", "peak_rss_bytes"),), "byte"),
    Column("end_rss_bytes", "end RSS", (("smaps", "end_rss_bytes"),), "byte"),
    Column("latency_ns", "latency", (("gbench", "latency_ns"),), "ns"),
)  # fmt: skip
STANDARD_METRICS = frozenset({"instructions", "rss_bytes", "wall_s", "latency_ns", "peak_rss_bytes", "page_faults"})
"""Metrics of a manifest that the columns above show; every other one is the workload's own and gets its own column."""


@dataclass(frozen=True)
class Guide:
    """What manifests say about tables. Where it is silent about a workload, everything measured is shown."""

    bare: Mapping[str, str] = field(default_factory=dict)
    """Workload to the variant that is shown as the bare workload."""
    metrics: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Workload to the metrics that it is about."""
    summaries: Mapping[str, str] = field(default_factory=dict)
    """Workload to its one line."""

    def columns(self, workload: str) -> tuple[Column, ...]:
        """Return the columns of a workload: a time only where the workload is about time, then its own metrics."""
        metrics = self.metrics.get(workload)
        if metrics is None:
            return COLUMNS
        standard = [c for c in COLUMNS if c.key != "wall_s" or "wall_s" in metrics]
        own = [metric for metric in metrics if metric not in STANDARD_METRICS]
        return (*standard, *(Column(m, m, (("smaps", m), ("callgrind", m)), unit_of(m)) for m in own))


@dataclass(frozen=True)
class Cell:
    """One figure, or why there is none."""

    value: float | None
    operations: int | None = None
    reason: str = ""
    spread: float | None = None
    """Half the range of the runs behind the figure, relative to it; None where there was one run."""


def cell(measurements: Iterable[Measurement], column: Column) -> Cell:
    """Return the figure of one arm, workload and variant."""
    rows = list(measurements)
    for provider, metric in column.sources:
        mine = [row for row in rows if row.provider == provider and row.status == "ok"]
        values = [_value(row, metric) for row in mine]
        known = [value for value in values if value is not None]
        if known:
            return Cell(statistics.median(known), mine[0].operations, spread=_spread(mine, metric))
    providers = {provider for provider, _ in column.sources}
    for row in rows:
        if row.provider in providers and row.reason:
            return Cell(None, reason=row.reason)
    return Cell(None)


def _value(row: Measurement, metric: str) -> float | None:
    """Return a measurement's figure: what stands at no checkpoint, else the last checkpoint's, else the median of runs.

    Over several operations it is the geometric mean of each one's median.
    """
    mine = [sample for sample in row.samples if sample.metric == metric]
    whole = [sample for sample in mine if sample.checkpoint is None]
    if whole:
        mine = whole
    elif row.provider == "smaps":
        mine = mine[-1:]
    by_detail: dict[str | None, list[float]] = {}
    for sample in mine:
        by_detail.setdefault(sample.detail, []).append(sample.value)
    medians = [statistics.median(values) for values in by_detail.values()]
    if len(medians) > 1 and min(medians) > 0:
        return statistics.geometric_mean(medians)
    return statistics.median(medians) if medians else None


def _spread(measurements: Sequence[Measurement], metric: str) -> float | None:
    """Return half the range of all runs of one figure, relative to their median; None where that says nothing."""
    runs = [
        sample.value
        for row in measurements
        for sample in row.samples
        if sample.metric == metric and sample.detail is None and (sample.checkpoint is None or sample.label == "run")
    ]
    middle = statistics.median(runs) if runs else 0.0
    return (max(runs) - min(runs)) / 2 / middle if len(runs) > 1 and middle > 0 else None


def show(value: float | None, unit: str) -> str:
    """Return a figure with its unit: counts exactly, all else to about four digits."""
    if value is None:
        return "–"
    if unit == "byte":
        return _scaled(value, 1024.0, ("B", "KiB", "MiB", "GiB"))
    if unit == "s":
        return f"{value:.3f} s" if value >= 1 else f"{value * 1e3:.2f} ms"
    if unit == "ns":
        for step, word in ((1e6, "ms"), (1e3, "µs")):
            if value >= step:
                return f"{_digits(value / step)} {word}"
        return f"{_digits(value)} ns"
    if unit == "ratio":
        return f"{value:.3f}"
    return f"{value:,.0f}" if value < 1e10 else _scaled(value, 1000.0, ("", "k", "M", "G", "T"))


def ratio(value: float | None, base: float | None) -> str:
    """Return `value` as a multiple of `base`."""
    if value is None or not base:
        return "–"
    found = value / base
    if found == 0 or found >= 0.1:
        return f"{found:.3f}×"
    return f"{found:.3g}×" if found >= 1e-4 else "<0.0001×"


def _digits(value: float) -> str:
    """Return a number with three digits, more where it has more before the point."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _scaled(value: float, step: float, units: Sequence[str]) -> str:
    index = 0
    while abs(value) >= step and index < len(units) - 1:
        value /= step
        index += 1
    return f"{value:,.0f} {units[index]}".rstrip() if index == 0 else f"{value:,.2f} {units[index]}"
