"""The one figure a table shows for a cell, taken from the samples of its measurements.

A figure over several repeats is the median; a figure that could not be measured keeps the reason. Pure.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Iterable, Sequence

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
    Column("peak_rss_bytes", "peak RSS", (("smaps", "peak_rss_bytes"),), "byte"),
    Column("end_rss_bytes", "end RSS", (("smaps", "end_rss_bytes"),), "byte"),
    Column("latency_ns", "latency", (("gbench", "latency_ns"),), "ns"),
)


@dataclass(frozen=True)
class Cell:
    """One figure, or why there is none."""

    value: float | None
    operations: int | None = None
    reason: str = ""


def cell(measurements: Iterable[Measurement], column: Column) -> Cell:
    """Return the figure of one arm, workload and variant."""
    rows = list(measurements)
    for provider, metric in column.sources:
        mine = [row for row in rows if row.provider == provider and row.status == "ok"]
        values = [_value(row, metric) for row in mine]
        known = [value for value in values if value is not None]
        if known:
            return Cell(statistics.median(known), mine[0].operations)
    providers = {provider for provider, _ in column.sources}
    for row in rows:
        if row.provider in providers and row.reason:
            return Cell(None, reason=row.reason)
    return Cell(None)


def _value(row: Measurement, metric: str) -> float | None:
    """Return the median of the samples; over several operations, the geometric mean of each one's median."""
    by_detail: dict[str | None, list[float]] = {}
    for sample in row.samples:
        if sample.metric == metric:
            by_detail.setdefault(sample.detail, []).append(sample.value)
    medians = [statistics.median(values) for values in by_detail.values()]
    if len(medians) > 1 and min(medians) > 0:
        return statistics.geometric_mean(medians)
    return statistics.median(medians) if medians else None


def show(value: float | None, unit: str) -> str:
    """Return a figure with its unit, to about four digits."""
    if value is None:
        return "–"
    if unit == "byte":
        return _scaled(value, 1024.0, ("B", "KiB", "MiB", "GiB"))
    if unit == "s":
        return f"{value:.3f} s" if value >= 1 else f"{value * 1e3:.2f} ms"
    if unit == "ns":
        return f"{value:.1f} ns"
    return f"{value:,.0f}" if value < 1e7 else _scaled(value, 1000.0, ("", "k", "M", "G"))


def ratio(value: float | None, base: float | None) -> str:
    """Return `value` as a multiple of `base`."""
    if value is None or not base:
        return "–"
    return f"{value / base:.3f}×"


def _scaled(value: float, step: float, units: Sequence[str]) -> str:
    index = 0
    while abs(value) >= step and index < len(units) - 1:
        value /= step
        index += 1
    return f"{value:,.0f} {units[index]}".rstrip() if index == 0 else f"{value:,.2f} {units[index]}"
