"""Statistics that a few wild values cannot move: quartiles, successive differences, Theil–Sen slope.

Pure functions on sequences of floats; called by every rule of this package. Units are the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Series = Sequence[float]


def median(values: Series) -> float:
    """Return the median; ValueError on no values."""
    if len(values) == 0:
        raise ValueError("the median of no values does not exist")
    return float(np.median(np.asarray(values, dtype=float)))


def median_series(runs: Sequence[Series]) -> list[float]:
    """Return the median over processes at each checkpoint, as long as the shortest series; empty for no runs."""
    if not runs:
        return []
    shortest = min(len(run) for run in runs)
    return [median([run[index] for run in runs]) for index in range(shortest)]


def quartiles(values: Series) -> tuple[float, float]:
    """Return the first and third quartile (linear interpolation, as numpy's default)."""
    low, high = np.percentile(np.asarray(values, dtype=float), [25, 75])
    return float(low), float(high)


def successive_differences(values: Series) -> list[float]:
    """Return x[i+1] - x[i] in order of measuring; empty for fewer than two values."""
    return [float(step) for step in np.diff(np.asarray(values, dtype=float))]


def without_outliers(values: Series, reach: float = 3.0) -> list[float]:
    """Return the values within `reach` interquartile ranges of the quartiles (Tukey's far-out fence)."""
    if len(values) < 4:
        return [float(value) for value in values]
    low, high = quartiles(values)
    fence = reach * (high - low)
    return [float(value) for value in values if low - fence <= value <= high + fence]


def sigma_of_steps(steps: Series) -> float:
    """Return the standard deviation of one measurement, from successive differences.

    von Neumann's estimator, sqrt(mean(d^2) / 2) with outlying differences removed. A slow drift or a
    step of the history (a commit that changed the figure) hardly moves it, where the plain standard
    deviation takes both for noise.
    """
    kept = without_outliers(steps)
    return float(np.sqrt(np.mean(np.square(kept)) / 2.0)) if kept else 0.0


@dataclass(frozen=True)
class Slope:
    """A Theil–Sen line: `per_round` with its confidence bounds, in units per step of the series."""

    per_round: float
    low: float
    high: float
    intercept: float


def theil_sen(values: Series, variance_ratio: float = 1.0) -> Slope:
    """Return the median of all pairwise slopes, with Sen's 95 % bounds.

    `variance_ratio` widens the bounds for autocorrelated series: it is the ratio by which the variance
    of Mann–Kendall's S grows (see `trend.kendall`). Source: P. K. Sen, JASA 63 (1968) 1379–1389.
    """
    series = np.asarray(values, dtype=float)
    count = len(series)
    if count < 2:
        raise ValueError("a slope needs at least two points")
    first, second = np.triu_indices(count, k=1)
    slopes = np.sort((series[second] - series[first]) / (second - first))
    slope = float(np.median(slopes))
    sigma = np.sqrt(count * (count - 1) * (2 * count + 5) / 18.0 * variance_ratio)
    reach = 1.959964 * sigma
    pairs = len(slopes)
    low_rank = int(np.floor((pairs - reach) / 2.0))
    high_rank = int(np.ceil((pairs + reach) / 2.0))
    low = float(slopes[max(low_rank, 0)])
    high = float(slopes[min(high_rank, pairs - 1)])
    rounds = np.arange(count, dtype=float)
    intercept = float(np.median(series - slope * rounds))
    return Slope(per_round=slope, low=low, high=high, intercept=intercept)
