"""Why memory differs: which category, from which checkpoint on, a step or a ramp.

Called by explain and compare with the median series of each arm. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from harness.analyze.robust import median_series, theil_sen

Shape = Literal["same", "constant", "step", "ramp", "rise"]
"""`ramp` still grows at the last checkpoint, `rise` grew for a while and is level since."""

ADVANTAGE = 0.5
"""A freer shape must halve the squared error before it is preferred to a simpler one."""

MIB = float(1 << 20)


@dataclass(frozen=True)
class SeriesDifference:
    """How one memory category of two builds differs over the checkpoints; bytes."""

    metric: str
    shape: Shape
    begins_at: int
    """Index in the series from which the difference stands out; 0 for one that is there from the start."""
    ends_at: int
    """Index from which it no longer changes; the last one for a ramp."""
    level: float
    """Median difference from there on."""
    per_checkpoint: float
    """Growth of the difference a checkpoint, for a ramp or a rise."""
    final: float
    """Difference at the last checkpoint."""

    def shape_words(self) -> str:
        """The shape of the difference in words, without the metric."""
        if self.shape == "same":
            return "does not differ"
        if self.shape == "step":
            return f"steps by {self.level / MIB:+.2f} MiB at checkpoint {self.begins_at}"
        if self.shape == "ramp":
            return (
                f"ramps by {self.per_checkpoint / 1024:+.1f} KiB a checkpoint from checkpoint {self.begins_at} on, "
                f"{self.final / MIB:+.2f} MiB at the end"
            )
        if self.shape == "rise":
            return (
                f"rises by {self.level / MIB:+.2f} MiB between checkpoints {self.begins_at} and {self.ends_at}, "
                "then stays"
            )
        side = "higher" if self.level >= 0 else "lower"
        return f"is {abs(self.level) / MIB:.2f} MiB {side} from the first checkpoint on"


def compare_series(
    metric: str, before: Sequence[float], after: Sequence[float], floor_bytes: float
) -> SeriesDifference:
    """Classify the difference of two series; below `floor_bytes` throughout it is `same`.

    A rise between two checkpoints, level before and after, is fitted by least squares at every pair of
    places. Within one checkpoint it is a step, up to the last one a ramp. A simpler shape is preferred
    while its squared error is at most 1 / ADVANTAGE of the best.
    """
    count = min(len(before), len(after))
    gap = np.asarray(after[:count], dtype=float) - np.asarray(before[:count], dtype=float)
    if count == 0 or float(np.max(np.abs(gap))) < floor_bytes:
        return SeriesDifference(metric, "same", 0, 0, 0.0, 0.0, float(gap[-1]) if count else 0.0)
    constant = float(np.sum((gap - gap.mean()) ** 2))
    level = SeriesDifference(metric, "constant", 0, 0, float(np.median(gap)), 0.0, float(gap[-1]))
    if count < 4 or constant <= count * (floor_bytes / 4.0) ** 2:
        return level
    fits = {
        (start, stop): _rise_error(gap, start, stop) for start in range(count - 1) for stop in range(start + 1, count)
    }
    place = _simplest(fits, count - 1)
    if fits[place] > ADVANTAGE * constant:
        return level
    start, stop = place
    if stop == start + 1:
        step = float(np.median(gap[stop:]) - np.median(gap[:stop]))
        return SeriesDifference(metric, "step", stop, stop, step, 0.0, float(gap[-1]))
    slope = theil_sen(list(gap[start : stop + 1])).per_round
    shape: Shape = "ramp" if stop == count - 1 else "rise"
    risen = float(np.median(gap[stop:]) - np.median(gap[: start + 1]))
    return SeriesDifference(metric, shape, start, stop, risen, slope, float(gap[-1]))


def _simplest(fits: Mapping[tuple[int, int], float], last: int) -> tuple[int, int]:
    """Return where the preferred rise starts and stops: a step, else a ramp, else any rise."""
    best = min(fits.values())
    steps = [place for place in fits if place[1] == place[0] + 1]
    ramps = [place for place in fits if place[1] == last]
    for places in (steps, ramps):
        place = min(places, key=lambda place: (fits[place], place))
        if fits[place] <= best / ADVANTAGE:
            return place
    return min(fits, key=lambda place: (fits[place], place))


def _rise_error(gap: npt.NDArray[np.float64], start: int, stop: int) -> float:
    """Squared error of a level up to `start`, a straight line from there to `stop`, and a level after."""
    climb = np.clip((np.arange(len(gap)) - start) / (stop - start), 0.0, 1.0)
    climb -= climb.mean()
    centred = gap - gap.mean()
    power = float(climb @ climb)
    explained = float(climb @ centred) ** 2 / power if power > 0 else 0.0
    return max(0.0, float(centred @ centred) - explained)


def by_category(
    before: Mapping[str, Sequence[Sequence[float]]], after: Mapping[str, Sequence[Sequence[float]]], floor_bytes: float
) -> list[SeriesDifference]:
    """Compare every metric both arms have, the one that moved most first."""
    found = [
        compare_series(metric, median_series(before[metric]), median_series(after[metric]), floor_bytes)
        for metric in before
        if metric in after
    ]
    # What is resident comes before what the allocator says of itself: the one is judged, the other explains it.
    return sorted(
        found, key=lambda i: (i.shape == "same", i.metric.startswith("allocator_"), -abs(i.level), i.metric)
    )


def grouped_sentences(differences: Sequence[SeriesDifference]) -> list[str]:
    """Return a sentence for each group of metrics that moved alike; most metrics see the same pages."""
    groups: list[list[SeriesDifference]] = []
    for item in (item for item in differences if item.shape != "same"):
        for group in groups:
            if _alike(group[0], item):
                group.append(item)
                break
        else:
            groups.append([item])
    return [f"{', '.join(sorted(item.metric for item in group))}: {group[0].shape_words()}" for group in groups]


def _alike(one: SeriesDifference, other: SeriesDifference) -> bool:
    near = abs(one.level - other.level) <= 0.1 * max(abs(one.level), abs(other.level))
    return one.shape == other.shape and abs(one.begins_at - other.begins_at) <= 1 and near
