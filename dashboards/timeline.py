"""The figures of each commit, in the order the commits were first measured, with the pins marked.

Who calls it: site.py. Reads the store; safe from any thread that may use the store.

Invariants
1. A line joins figures of one environment and one provider only: others would not be comparable.
2. A working tree that differed from its commit is a point of its own, and says so.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pandas as pd

from dashboards.arms import REFERENCE
from dashboards.figures import format_value, short_revision
from dashboards.line_chart import Line, LineChart, Point
from dashboards.summary import END, PEAK, REPEAT_LABELS, TITLES, MetricKey, label, metric_order
from results import Store

_METRICS = ("instructions", "wall_s", PEAK, END)
_TICKS_MAX = 12


@dataclass(frozen=True)
class Commit:
    """One point on the axis."""

    name: str
    is_pin: bool


@dataclass(frozen=True)
class TimelineChart:
    """One workload variant's metric over commits."""

    key: MetricKey
    label: str
    chart: LineChart
    rows: tuple[tuple[str, float, int], ...]
    """Commit, median and number of samples."""
    unit: str


@dataclass(frozen=True)
class Timeline:
    """All charts of one allocator in one environment."""

    allocator: str
    environment_key: str
    machine: str
    commits: tuple[Commit, ...]
    charts: tuple[TimelineChart, ...]

    @property
    def by_metric(self) -> list[tuple[MetricKey, list[TimelineChart]]]:
        """The charts of each metric and provider, in the order of the matrix."""
        return [(key, list(charts)) for key, charts in groupby(self.charts, key=lambda each: each.key)]


def timelines(store: Store) -> list[Timeline]:
    """Return a timeline for each allocator that was measured at a commit, in each environment, the newest first."""
    figures = _figures(store)
    if figures.empty:
        return []
    newest = figures.groupby(["allocator", "environment_key"])["run_started_at"].max().sort_values(ascending=False)
    return [
        _timeline(figures[(figures.allocator == allocator) & (figures.environment_key == environment)])
        for allocator, environment in newest.index
    ]


def _figures(store: Store) -> pd.DataFrame:
    """Return one row a figure of a whole run, in the order they were measured."""
    frame = store.samples_frame(status="ok", metric=_METRICS)
    is_whole = frame.checkpoint.isna() | frame.label.isin(REPEAT_LABELS)
    frame = frame[is_whole & frame.detail.isna() & (frame.arm != REFERENCE)]
    changes = frame.dirty.map({True: " + changes", False: ""})
    return frame.assign(commit=frame.revision.map(short_revision) + changes)


def _timeline(figures: pd.DataFrame) -> Timeline:
    pinned = set(figures[figures.arm == "pin"].commit)
    names = list(dict.fromkeys(figures.commit))
    commits = tuple(Commit(name, name in pinned) for name in names)
    groups = figures.groupby(["metric", "provider", "workload", "variant"])
    charts = [_chart(key, group, commits) for key, group in groups]
    charts.sort(key=lambda each: (metric_order(each.key), each.label))
    first = figures.iloc[-1]
    return Timeline(
        first.allocator, first.environment_key, f"{first.cpu_model}, kernel {first.kernel}", commits, tuple(charts)
    )


def _chart(group_key: Hashable, group: pd.DataFrame, commits: tuple[Commit, ...]) -> TimelineChart:
    metric, provider, workload, variant = group_key if isinstance(group_key, tuple) else (group_key, "", "", "")
    key = MetricKey(str(metric), str(provider))
    unit = str(group.unit.iloc[-1])
    places = {commit.name: place for place, commit in enumerate(commits)}
    rows, points = [], []
    for name, values in group.groupby("commit", sort=False).value:
        middle = float(values.median())
        rows.append((str(name), middle, len(values)))
        points.append(_point(str(name), places[str(name)], values, unit))
    points.sort(key=lambda point: point.x)
    rows.sort(key=lambda row: places[row[0]])
    title = f"{TITLES[key.metric]} of {label((str(workload), str(variant)))}"
    chart = LineChart(
        slug=f"timeline-{group.environment_key.iloc[0]}-{metric}-{provider}-{workload}-{variant}",
        title=title,
        description=f"{len(points)} commits in the order they were first measured; pins are marked.",
        x_label="commit",
        unit=unit,
        lines=(Line(str(group.allocator.iloc[0]), 0, tuple(points), emphasized=True),),
        x_ticks=_commit_ticks(points, commits),
        marks=tuple(
            (place, f"pin {commit.name}")
            for place, commit in enumerate(commits)
            if commit.is_pin and any(point.x == place for point in points)
        ),
        from_zero=False,
        is_continuous=False,
    )
    return TimelineChart(key, label((str(workload), str(variant))), chart, tuple(rows), unit)


def _point(name: str, place: int, values: Any, unit: str) -> Point:
    middle, several = float(values.median()), len(values) > 1
    title = f"{name}: {format_value(unit, middle)}" + (f" (median of {len(values)})" if several else "")
    low, high = (float(values.min()), float(values.max())) if several else (None, None)
    return Point(place, middle, title, low, high)


def _commit_ticks(points: list[Point], commits: tuple[Commit, ...]) -> tuple[tuple[float, str], ...]:
    """Return as many commits' names as fit under the axis, the first and the last among them."""
    places = sorted({int(point.x) for point in points})
    stride = max(1, -(-len(places) // _TICKS_MAX))
    chosen = places[::-1][::stride][::-1]
    return tuple((place, commits[place].name[:7]) for place in chosen)
