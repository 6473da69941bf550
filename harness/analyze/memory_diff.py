"""Why memory differs: which category, from which checkpoint on, a step or a ramp.

Called by explain and compare with the median series of each arm. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.analyze.robust import median, theil_sen

Shape = Literal["same", "step", "ramp", "constant"]

STEP_ADVANTAGE = 0.7
"""A second parameter must remove 30 % of the squared error before a ramp is preferred, or a break's place believed."""


@dataclass(frozen=True)
class SeriesDifference:
    """How one memory category of two builds differs over the checkpoints; bytes."""

    metric: str
    shape: Shape
    begins_at: int
    """Index in the series from which the difference stands out; 0 for one that is there from the start."""
    level: float
    """Median difference from there on."""
    per_checkpoint: float
    """Growth of the difference a checkpoint, for a ramp."""
    final: float
    """Difference at the last checkpoint."""

    def sentence(self) -> str:
        """The difference in words."""
        mib = 1 << 20
        if self.shape == "same":
            return f"{self.metric} does not differ"
        if self.shape == "ramp":
            return (f"{self.metric} ramps by {self.per_checkpoint / 1024:+.1f} KiB a checkpoint from checkpoint "
                    f"{self.begins_at} on, {self.final / mib:+.2f} MiB at the end")
        if self.shape == "step":
            return f"{self.metric} steps by {self.level / mib:+.2f} MiB at checkpoint {self.begins_at}"
        return f"{self.metric} is {self.level / mib:+.2f} MiB apart from the first checkpoint on"


def median_series(runs: Sequence[Sequence[float]]) -> list[float]:
    """Return the median over processes at each checkpoint, as long as the shortest series; empty for no runs."""
    if not runs:
        return []
    shortest = min(len(run) for run in runs)
    return [median([run[index] for run in runs]) for index in range(shortest)]


def compare_series(metric: str, before: Sequence[float], after: Sequence[float], floor_bytes: float) -> SeriesDifference:
    """Classify the difference of two series; below `floor_bytes` throughout it is `same`.

    Three models of the difference are fitted by least squares: a constant, a step at the best place, a
    ramp from the best place. The simplest that is not clearly worse holds.
    """
    count = min(len(before), len(after))
    gap = np.asarray(after[:count], dtype=float) - np.asarray(before[:count], dtype=float)
    if count == 0 or float(np.max(np.abs(gap))) < floor_bytes:
        return SeriesDifference(metric, "same", 0, 0.0, 0.0, float(gap[-1]) if count else 0.0)
    constant = float(np.sum((gap - gap.mean()) ** 2))
    if count < 4 or constant <= count * (floor_bytes / 4.0) ** 2:
        return SeriesDifference(metric, "constant", 0, float(np.median(gap)), 0.0, float(gap[-1]))
    step_error, step_at = min((_step_error(gap, at), at) for at in range(1, count))
    ramp_error, ramp_at = min((_ramp_error(gap, at), at) for at in range(0, count - 2))
    if min(step_error, ramp_error) > STEP_ADVANTAGE * constant:
        return SeriesDifference(metric, "constant", 0, float(np.median(gap)), 0.0, float(gap[-1]))
    if step_error <= ramp_error:
        return SeriesDifference(metric, "step", step_at, float(np.median(gap[step_at:])), 0.0, float(gap[-1]))
    slope = theil_sen(list(gap[ramp_at:])).per_round
    return SeriesDifference(metric, "ramp", ramp_at, float(np.median(gap[ramp_at:])), slope, float(gap[-1]))


def _step_error(gap: np.ndarray, at: int) -> float:
    """Squared error of a level before `at` and another from there on."""
    return float(np.sum((gap[:at] - gap[:at].mean()) ** 2) + np.sum((gap[at:] - gap[at:].mean()) ** 2))


def _ramp_error(gap: np.ndarray, at: int) -> float:
    """Squared error of a level up to `at` and a straight line rising from there."""
    design = np.column_stack([np.ones(len(gap)), np.maximum(0.0, np.arange(len(gap)) - at)])
    solution, *_ = np.linalg.lstsq(design, gap, rcond=None)
    return float(np.sum((gap - design @ solution) ** 2))


def by_category(before: Mapping[str, Sequence[Sequence[float]]], after: Mapping[str, Sequence[Sequence[float]]],
                floor_bytes: float) -> list[SeriesDifference]:
    """Compare every metric both arms have, the one that moved most first."""
    found = [compare_series(metric, median_series(before[metric]), median_series(after[metric]), floor_bytes)
             for metric in before if metric in after]
    return sorted(found, key=lambda item: (item.shape == "same", -abs(item.level), item.metric))
