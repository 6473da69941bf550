"""Is there a trend, and does it flatten? Mann–Kendall's test, adjusted for autocorrelation, and an F test.

Called by `plateau`. Sources: M. G. Kendall, Rank Correlation Methods (1975); K. H. Hamed and
A. R. Rao, Journal of Hydrology 204 (1998) 182–196 for the adjustment. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from harness.analyze.robust import theil_sen

LAG_Z = 1.645
"""Autocorrelations below this many standard errors (90 % two-sided, 1/sqrt(n)) are taken for chance."""


FLATTENING_P = 0.05
"""Chance of taking a straight rise for one that flattens: the power it costs to tell warm-ups from leaks."""

TIME_CONSTANTS = 16
"""Of the saturating rise, tried in a geometric row from one round to twice the series."""


@dataclass(frozen=True)
class Trend:
    """`z` is the standard score of S; `variance_ratio` >= 1 is what autocorrelation multiplied its variance by."""

    s: int
    z: float
    variance_ratio: float


def kendall(values: Sequence[float]) -> Trend:
    """Return the adjusted trend score of a series; a constant series has z = 0.

    The adjustment only ever widens: negative autocorrelation would narrow the variance and is ignored,
    because a sawtooth must not make the test bolder.
    """
    series = np.asarray(values, dtype=float)
    count = len(series)
    if count < 4:
        raise ValueError("a trend test needs at least four points")
    first, second = np.triu_indices(count, k=1)
    s = int(np.sum(np.sign(series[second] - series[first])))
    _, ties = np.unique(series, return_counts=True)
    variance = (count * (count - 1) * (2 * count + 5) - np.sum(ties * (ties - 1) * (2 * ties + 5))) / 18.0
    if variance <= 0:
        return Trend(s=0, z=0.0, variance_ratio=1.0)
    ratio = _variance_ratio(series)
    z = 0.0 if s == 0 else (s - np.sign(s)) / np.sqrt(variance * ratio)
    return Trend(s=s, z=float(z), variance_ratio=ratio)


def _variance_ratio(series: npt.NDArray[np.float64]) -> float:
    count = len(series)
    rounds = np.arange(count, dtype=float)
    residuals = stats.rankdata(series - theil_sen(list(series)).per_round * rounds)
    centred = residuals - residuals.mean()
    power = float(np.sum(centred * centred))
    if power == 0:
        return 1.0
    total = 0.0
    for lag in range(1, count - 2):
        correlation = float(np.sum(centred[lag:] * centred[:-lag])) / power
        if abs(correlation) > LAG_Z / np.sqrt(count):
            total += (count - lag) * (count - lag - 1) * (count - lag - 2) * correlation
    return max(1.0, 1.0 + 2.0 * total / (count * (count - 1) * (count - 2)))


def flattens(values: Sequence[float]) -> bool:
    """Say whether a rise flattens: is a + b(1 - exp(-t/tau)) with b > 0 significantly better than a straight line?

    F test of the one parameter more, at FLATTENING_P. A warm-up flattens, a leak does not; too short a
    series (fewer than six points) never says yes.
    """
    series = np.asarray(values, dtype=float)
    count = len(series)
    if count < 6:
        return False
    rounds = np.arange(count, dtype=float)
    straight, _ = _fit(rounds, series)
    fits = (_fit(1.0 - np.exp(-rounds / tau), series) for tau in np.geomspace(1.0, 2.0 * count, TIME_CONSTANTS))
    curved = min((error for error, rise in fits if rise > 0), default=straight)
    if curved >= straight:
        return False
    free = count - 3
    return bool(curved == 0 or (straight - curved) * free / curved > stats.f.isf(FLATTENING_P, 1, free))


def _fit(shape: npt.NDArray[np.float64], series: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return (squared error, coefficient) of a level plus a multiple of `shape`, by least squares."""
    centred, target = shape - shape.mean(), series - series.mean()
    coefficient = float(centred @ target) / float(centred @ centred)
    residual = target - coefficient * centred
    return float(residual @ residual), coefficient
