"""The figures of each commit along the history, with the pins marked.

Who calls it: site.py. Reads the store; safe from any thread that may use the store.

Invariants
1. A line joins figures of one environment, one provider and one profile only: others would not be comparable.
2. Commits stand in the order of the history that the caller gives; those it does not name follow, in the order
   they were first measured. An old commit that was measured lately is no news.
3. A working tree that differed from its commit is a point of its own, and says so.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pandas as pd

from dashboards.arms import REFERENCE
from dashboards.figures import format_value, short_revision
from dashboards.line_chart import Line, LineChart, Point
from dashboards.summary import END, PEAK, REPEAT_LABELS, TITLES, WALL, MetricKey, label, metric_order
from results import Store

_METRICS = ("instructions", WALL, PEAK, END)
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
    profile: str
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


def timelines(store: Store, history: Sequence[str] = ()) -> list[Timeline]:
    """Return a timeline for each allocator that was measured at a commit, in each environment, the newest first.

    `history` holds full commit ids, the oldest first.
    """
    figures = _figures(store)
    if figures.empty:
        return []
    newest = figures.groupby(["allocator", "environment_key"])["run_started_at"].max().sort_values(ascending=False)
    return [
        _timeline(figures[(figures.allocator == allocator) & (figures.environment_key == environment)], history)
        for allocator, environment in newest.index
    ]


def _figures(store: Store) -> pd.DataFrame:
    """Return one row a figure of a whole run, in the order they were measured."""
    frame = store.samples_frame(status="ok", metric=_METRICS)
    is_whole = frame.checkpoint.isna() | frame.label.isin(REPEAT_LABELS)
    frame = frame[is_whole & frame.detail.isna() & (frame.arm != REFERENCE)]
    changes = frame.dirty.map({True: " + changes", False: ""})
    return frame.assign(commit=frame.revision.map(short_revision) + changes)


def _timeline(figures: pd.DataFrame, history: Sequence[str]) -> Timeline:
    pinned = set(figures[figures.arm == "pin"].commit)
    commits = tuple(Commit(name, name in pinned) for name in _in_order(figures, history))
    groups = figures.groupby(["metric", "provider", "workload", "variant", "profile"])
    charts = [_chart(key, group, commits) for key, group in groups]
    charts.sort(key=lambda each: (metric_order(each.key), each.label, each.profile))
    first = figures.iloc[-1]
    return Timeline(
        first.allocator, first.environment_key, f"{first.cpu_model}, kernel {first.kernel}", commits, tuple(charts)
    )


def _in_order(figures: pd.DataFrame, history: Sequence[str]) -> list[str]:
    """Return the commits' names along the history, a changed tree behind the commit it is based on."""
    places = {revision: place for place, revision in enumerate(history)}
    measured = figures.drop_duplicates("commit")[["revision", "dirty", "commit"]].itertuples(index=False)
    ordered = sorted(measured, key=lambda each: (places.get(each.revision, len(places)), bool(each.dirty and places)))
    return [str(each.commit) for each in ordered]


def _chart(group_key: Hashable, group: pd.DataFrame, commits: tuple[Commit, ...]) -> TimelineChart:
    assert isinstance(group_key, tuple)
    metric, provider, workload, variant, profile = (str(part) for part in group_key)
    allocator, environment_key = str(group.allocator.iloc[0]), str(group.environment_key.iloc[0])
    unit = str(group.unit.iloc[-1])
    by_commit = {str(name): values for name, values in group.groupby("commit", sort=False).value}
    measured = [(place, commit) for place, commit in enumerate(commits) if commit.name in by_commit]
    points = tuple(_point(commit.name, place, by_commit[commit.name], unit) for place, commit in measured)
    case = label((workload, variant))
    chart = LineChart(
        slug=f"timeline-{allocator}-{environment_key}-{'-'.join(group_key)}",
        title=f"{TITLES[metric]} of {case}, {profile}",
        description=f"{len(points)} commits, the oldest first; pins are marked.",
        x_label="commit",
        unit=unit,
        lines=(Line(allocator, 0, points, emphasized=True),),
        x_ticks=_commit_ticks(measured),
        marks=tuple((place, f"pin {commit.name}") for place, commit in measured if commit.is_pin),
        from_zero=False,
        is_continuous=False,
    )
    rows = tuple(
        (commit.name, float(by_commit[commit.name].median()), len(by_commit[commit.name])) for _, commit in measured
    )
    return TimelineChart(MetricKey(metric, provider), case, profile, chart, rows, unit)


def _point(name: str, place: int, values: Any, unit: str) -> Point:
    middle, several = float(values.median()), len(values) > 1
    title = f"{name}: {format_value(unit, middle)}" + (f" (median of {len(values)})" if several else "")
    low, high = (float(values.min()), float(values.max())) if several else (None, None)
    return Point(place, middle, title, low, high)


def _commit_ticks(measured: list[tuple[int, Commit]]) -> tuple[tuple[float, str], ...]:
    """Return as many commits' names as fit under the axis, the last always among them."""
    stride = max(1, -(-len(measured) // _TICKS_MAX))
    return tuple((place, commit.name[:7]) for place, commit in measured[::-1][::stride][::-1])
