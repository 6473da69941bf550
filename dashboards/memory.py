"""Resident memory over the checkpoints of each workload: one chart a workload variant, all arms in it.

Who calls it: site.py. Pure, safe from any thread.

Invariant: a chart has a point for every checkpoint that any process of an arm reached, at the median of
those that reached it; nothing is smoothed or left out.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboards.arms import LIVE_STYLE, Arm, arm_key
from dashboards.figures import format_value
from dashboards.line_chart import Line, LineChart, Point
from dashboards.summary import RESIDENT, Case, is_whole, label
from results.records import Measurement, Sample

LIVE = "live_bytes"
LAZY = "lazyfree_bytes"


@dataclass(frozen=True)
class MemoryCurves:
    """One workload variant's chart and the table behind it."""

    case: Case
    label: str
    chart: LineChart
    arms: tuple[Arm, ...]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    """For each checkpoint its name and the median of each line, in bytes."""
    lazy: tuple[str, ...]
    """Sentences about arms whose figure includes pages that are as good as free."""


def memory_curves(measurements: Iterable[Measurement], arms: Sequence[Arm]) -> list[MemoryCurves]:
    """Return the curves of every workload variant that has checkpoints, by name."""
    by_case: dict[Case, dict[tuple[str, str], list[Measurement]]] = defaultdict(lambda: defaultdict(list))
    for measurement in measurements:
        if measurement.status == "ok" and _series(measurement, RESIDENT):
            by_case[(measurement.workload, measurement.variant)][arm_key(measurement)].append(measurement)
    return [_curves(case, by_arm, arms) for case, by_arm in sorted(by_case.items())]


def _curves(case: Case, by_arm: dict[tuple[str, str], list[Measurement]], arms: Sequence[Arm]) -> MemoryCurves:
    present = tuple(arm for arm in arms if arm.key in by_arm)
    lines = tuple(
        Line(arm.name, arm.style, _points(arm, by_arm[arm.key]), emphasized=arm.role == "tree") for arm in present
    )
    lines += _live_line(by_arm)
    names = _checkpoint_names(by_arm)
    values = [{point.x: point.y for point in line.points} for line in lines]
    rows = tuple((names[x], tuple(known.get(x) for known in values)) for x in sorted(names))
    chart = LineChart(
        slug=f"memory-{case[0]}-{case[1]}",
        title=f"Resident memory of {label(case)}",
        description=f"{len(present)} builds over {len(rows)} checkpoints; the table below has the figures.",
        x_label="checkpoint",
        unit="bytes",
        lines=lines,
    )
    return MemoryCurves(case, label(case), chart, present, rows, _lazy_notes(present, by_arm))


def _live_line(by_arm: dict[tuple[str, str], list[Measurement]]) -> tuple[Line, ...]:
    """Return what the workload itself holds, which is the same under every allocator; nothing if it does not say."""
    for measurements in by_arm.values():
        series = _series(measurements[0], LIVE)
        if any(sample.value > 0 for _, sample in series):
            points = tuple(
                Point(
                    checkpoint,
                    sample.value,
                    f"live, {_name(checkpoint, sample)}: {format_value('bytes', sample.value)}",
                )
                for checkpoint, sample in series
            )
            return (Line("live bytes", LIVE_STYLE, points),)
    return ()


def _points(arm: Arm, measurements: Sequence[Measurement]) -> tuple[Point, ...]:
    by_checkpoint: dict[int, list[Sample]] = defaultdict(list)
    for measurement in measurements:
        for checkpoint, sample in _series(measurement, RESIDENT):
            by_checkpoint[checkpoint].append(sample)
    points = []
    for checkpoint, samples in sorted(by_checkpoint.items()):
        values = [sample.value for sample in samples]
        middle = statistics.median(values)
        title = f"{arm.name}, {_name(checkpoint, samples[0])}: {format_value('bytes', middle)}"
        times = [sample.time_s for sample in samples if sample.time_s is not None]
        if times:
            title += f" after {format_value('s', statistics.median(times))}"
        if len(values) > 1:
            title += f" (median of {len(values)})"
        several = len(values) > 1
        points.append(
            Point(checkpoint, middle, title, min(values) if several else None, max(values) if several else None)
        )
    return tuple(points)


def _series(measurement: Measurement, metric: str) -> list[tuple[int, Sample]]:
    return [
        (sample.checkpoint, sample)
        for sample in measurement.samples
        if sample.metric == metric and sample.checkpoint is not None and not is_whole(sample)
    ]


def _checkpoint_names(by_arm: dict[tuple[str, str], list[Measurement]]) -> dict[float, str]:
    names: dict[float, str] = {}
    for measurements in by_arm.values():
        for measurement in measurements:
            for checkpoint, sample in _series(measurement, RESIDENT):
                names.setdefault(float(checkpoint), _name(checkpoint, sample))
    return names


def _name(checkpoint: int, sample: Sample) -> str:
    return f"{checkpoint} ({sample.label})" if sample.label else str(checkpoint)


def _lazy_notes(arms: Sequence[Arm], by_arm: dict[tuple[str, str], list[Measurement]]) -> tuple[str, ...]:
    """Say where MADV_FREE makes a figure look larger than what the kernel would have to keep."""
    notes = []
    for arm in arms:
        largest = max((sample.value for each in by_arm[arm.key] for _, sample in _series(each, LAZY)), default=0.0)
        if largest > 0:
            notes.append(
                f"{arm.name}: up to {format_value('bytes', largest)} of its figure are pages it gave up by MADV_FREE, "
                "which the kernel takes when it needs them."
            )
    return tuple(notes)
