"""Takes the figures that are judged out of stored measurements.

Called by the docket, explain and bisect. Pure. One measurement is one execution, so it has one count of a
metric and one series of a memory category.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pandas as pd

from harness.analyze.placement import place
from harness.analyze.robust import median
from harness.collect.callgrind_profile import parse
from results.records import Measurement


class NoFigure(ValueError):
    """A measurement lacks the figure that was to be judged. The message is one sentence."""


def count_of(measurement: Measurement, metric: str) -> float:
    """Return the figure of `metric` that belongs to the whole execution; NoFigure when there is none.

    A provider that times several runs in one job labels them `run`; their median is the job's figure.
    """
    own = [sample for sample in measurement.samples if sample.metric == metric and sample.detail is None]
    runs = [sample.value for sample in own if sample.label == "run"]
    if runs:
        return median(runs)
    values = [sample.value for sample in own if sample.checkpoint is None]
    if len(values) != 1:
        raise NoFigure(
            f"{measurement.workload} by {measurement.provider} has {len(values)} figures of {metric}, "
            "not one: measure it again."
        )
    return values[0]


def series_of(measurement: Measurement, metric: str, label: str) -> list[float]:
    """Return the values of `metric` at the checkpoints labelled `label`, in order; NoFigure when there are none."""
    points = sorted(
        (sample.checkpoint, sample.value)
        for sample in measurement.samples
        if sample.metric == metric and sample.checkpoint is not None and sample.label == label
    )
    if not points:
        raise NoFigure(
            f"{measurement.workload} has no {metric} at checkpoints labelled {label}: "
            "correct series_label in its manifest."
        )
    return [value for _, value in points]


def histories_in(frame: pd.DataFrame, before: datetime) -> list[list[float]]:
    """Return one history a build, oldest figure first: the noise a workload showed against itself.

    `frame` holds the samples of one metric of one workload, as the store returns them, in the order they were
    measured; an execution of several timed runs counts as its median. Runs begun after `before` are left out.
    """
    if frame.empty:
        return []
    known = frame[frame["detail"].isna() & (pd.to_datetime(frame["run_started_at"], utc=True) < before)]
    figures = known.groupby(["build_key", "measurement_id"], sort=False)["value"].median()
    return [[float(value) for value in group] for _, group in figures.groupby(level="build_key", sort=False)]


def memory_by_category(measurements: Sequence[Measurement]) -> dict[str, list[list[float]]]:
    """Return by metric the series over all checkpoints of each execution, in bytes."""
    found: dict[str, list[list[float]]] = defaultdict(list)
    for measurement in measurements:
        series: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for sample in measurement.samples:
            if sample.checkpoint is not None and sample.unit == "byte" and sample.detail is None:
                series[sample.metric].append((sample.checkpoint, sample.value))
        for metric, points in series.items():
            found[metric].append([value for _, value in sorted(points)])
    return dict(found)


ALLOCATION_NAMES = frozenset({"malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign"})


def reached_allocator(measurement: Measurement) -> bool:
    """Say whether the counted region executed any instruction of the allocator; True where no profile can tell.

    A workload that never allocates gives a perfectly stable count that says nothing about an allocator.
    """
    packed = next((item.data for item in measurement.attachments if item.kind == "callgrind"), None)
    if packed is None:
        return True
    provider = measurement.active_allocator.rsplit("/", 1)[-1]
    profile, binary = parse(packed), Path(measurement.active_allocator)
    if profile.unplaced and binary.is_file():
        profile = place(profile, binary)
    functions = [function for function in profile.functions if function.object.rsplit("/", 1)[-1] == provider]
    if provider.startswith("libc"):
        return any(function.name in ALLOCATION_NAMES for function in functions)
    return bool(functions)
