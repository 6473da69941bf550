"""The exact Mann–Whitney test for small samples, and the Hodges–Lehmann shift with its interval.

Exact also with ties: all ways to deal the pooled mid-ranks to the two arms are counted, which for the
five against five of this suite is 252. Assumes nothing but that, without a difference, every order of
the runs is equally likely; interleaved arms give that. Pure functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt
from scipy import stats

ENUMERATION_MAX = 200_000
"""Up to this many deals are enumerated (9 against 9 is 48,620); beyond, the normal approximation is exact to 1e-3."""


@dataclass(frozen=True)
class RankTest:
    """U counts the pairs in which B lies above A, ties one half."""

    u: float
    pairs: int
    p_greater: float
    """One-sided: chance of a U this large if B were not above A."""
    p_two_sided: float


@dataclass(frozen=True)
class Shift:
    """Hodges–Lehmann: the median of all differences b - a, and an interval of at least the level asked for."""

    estimate: float
    low: float
    high: float
    level: float


def wins(before: Sequence[float], after: Sequence[float]) -> float:
    """Return Mann–Whitney's U of `after` over `before`: pairs with after > before, ties one half."""
    a = np.asarray(before, dtype=float)[:, None]
    b = np.asarray(after, dtype=float)[None, :]
    return float(np.sum(b > a) + 0.5 * np.sum(b == a))


def mann_whitney(before: Sequence[float], after: Sequence[float]) -> RankTest:
    """Test whether `after` lies above `before`; ValueError if an arm is empty."""
    n, m = len(before), len(after)
    if n == 0 or m == 0:
        raise ValueError("a rank test needs at least one value an arm")
    u = wins(before, after)
    if comb(n + m, m) > ENUMERATION_MAX:
        greater = stats.mannwhitneyu(after, before, alternative="greater", method="asymptotic").pvalue
        two_sided = stats.mannwhitneyu(after, before, alternative="two-sided", method="asymptotic").pvalue
        return RankTest(u, n * m, float(greater), float(two_sided))
    ranks = stats.rankdata(np.concatenate([np.asarray(before, float), np.asarray(after, float)]))
    deals = _deals(n + m, m)
    sums = np.asarray(ranks)[deals].sum(axis=1)
    us = sums - m * (m + 1) / 2.0
    tolerance = 1e-9
    greater = float(np.mean(us >= u - tolerance))
    centre = n * m / 2.0
    two_sided = float(np.mean(np.abs(us - centre) >= abs(u - centre) - tolerance))
    return RankTest(u, n * m, greater, two_sided)


@lru_cache(maxsize=32)
def _deals(total: int, chosen: int) -> npt.NDArray[np.intp]:
    return np.array(list(combinations(range(total), chosen)), dtype=np.intp)


@lru_cache(maxsize=32)
def _null_tail(n: int, m: int) -> tuple[float, ...]:
    """P(U <= k) for k = 0 … n*m without ties."""
    deals = _deals(n + m, m)
    us = deals.sum(axis=1) - m * (m - 1) // 2
    counts = np.bincount(us, minlength=n * m + 1)
    return tuple(np.cumsum(counts) / len(deals))


def smallest_p(n: int, m: int) -> float:
    """Return the smallest two-sided p that n against m can reach: 0.1 for 3v3, 0.0286 for 4v4, 0.0079 for 5v5."""
    return 2.0 / comb(n + m, m)


def shift(before: Sequence[float], after: Sequence[float], level: float = 0.95) -> Shift:
    """Return the Hodges–Lehmann shift from `before` to `after` with Moses' interval.

    With so few values that no interval reaches `level`, the widest one is returned with the level it has.
    """
    n, m = len(before), len(after)
    differences = np.sort((np.asarray(after, dtype=float)[:, None] - np.asarray(before, dtype=float)[None, :]).ravel())
    if comb(n + m, m) <= ENUMERATION_MAX:
        tail = _null_tail(n, m)
        rank = 1
        while rank < (n * m + 1) // 2 and 1.0 - 2.0 * tail[rank] >= level:
            rank += 1
        reached = max(0.0, 1.0 - 2.0 * tail[rank - 1])
    else:
        sigma = np.sqrt(n * m * (n + m + 1) / 12.0)
        rank = max(1, int(np.floor(n * m / 2.0 - stats.norm.ppf(0.5 + level / 2.0) * sigma)))
        reached = level
    return Shift(float(np.median(differences)), float(differences[rank - 1]), float(differences[-rank]), reached)
