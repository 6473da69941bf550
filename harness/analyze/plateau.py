"""Judges whether memory levels off: one arm by itself, or a new build against an old one.

The words are `plateau`, `higher plateau`, `growing` and `cannot tell`. Called by gate, compare, run and
the self-test with lists of bytes, one value a round. Pure; docs/measuring.md holds the measured rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analyze.ranktest import mann_whitney, shift, wins
from harness.analyze.robust import median, median_series, theil_sen
from harness.analyze.trend import flattens, kendall
from harness.analyze.verdict import Outcome, Threshold, Verdict, unplaced

MIB = float(1 << 20)

ARM_PROCESSES = 5
"""Fresh processes an arm: 24 of 25 pairs has a chance of 2/252 = 0.79 % when nothing changed."""

WINS_MIN = 24.0
ROUNDS_MIN = 15
"""Ten rounds are too few to tell a warm-up from a leak."""

TREND_Z_MIN = 2.326
"""One-sided 1 %."""


@dataclass(frozen=True)
class MemoryLimits:
    """How much more memory is too much, from the thresholds file."""

    level_percent: float = 2.0
    level_bytes: float = MIB
    growth_percent: float = 0.1
    """Of the level, a round."""
    growth_bytes: float = 4096.0
    """A round: one page, the grain that resident memory has."""
    origin: str = "rule: max(2 %, 1 MiB) on the level, max(0.1 %, 1 page) a round on the slope"


Arm = Sequence[Sequence[float]]
"""The series of each process of one arm, bytes by round."""


def settled(series: Sequence[float], warmup_rounds: int) -> list[float]:
    """Return the series after its warm-up."""
    return [float(value) for value in series[warmup_rounds:]]


def slope_of(series: Sequence[float], warmup_rounds: int) -> float:
    """Return Theil–Sen's slope after the warm-up, bytes a round."""
    return theil_sen(settled(series, warmup_rounds)).per_round


def level_of(series: Sequence[float]) -> float:
    """Return the median of the last third, bytes."""
    third = max(1, len(series) // 3)
    return median(series[-third:])


def judge_two_arms(
    before: Arm, after: Arm, warmup_rounds: int = 3, limits: MemoryLimits = MemoryLimits(), rounds_min: int = ROUNDS_MIN
) -> Verdict:
    """Judge the memory of a new build against an old one from interleaved fresh processes.

    Growing: the slopes after the warm-up win at least 24 of 25 pairs, the median slope rose by more than
    the growth limit, and what the new build takes more does not flatten (a slow warm-up does, a leak does
    not). Higher plateau: the levels win, by more than the level limit. Growth is judged first, since what
    grows is also higher.
    """
    sizes = (len(before), len(after))
    lengths = [len(series) for series in (*before, *after)]
    if min(sizes) < ARM_PROCESSES:
        return unplaced(
            Outcome.CANNOT_TELL,
            unit="bytes",
            samples=sizes,
            reason=f"not enough data: {ARM_PROCESSES} processes an arm are needed",
        )
    if min(lengths) < rounds_min:
        return unplaced(
            Outcome.CANNOT_TELL,
            unit="bytes",
            samples=sizes,
            reason=f"not enough data: {rounds_min} rounds are needed, the shortest series has {min(lengths)}",
        )
    slopes = (
        [slope_of(series, warmup_rounds) for series in before],
        [slope_of(series, warmup_rounds) for series in after],
    )
    levels = [level_of(series) for series in before], [level_of(series) for series in after]
    growth = _judge_growth(slopes, levels, limits, sizes)
    if growth is None or _growth_flattens(before, after, warmup_rounds):
        return _judge_level(levels, limits, sizes)
    return growth


def _needed_wins(n: int, m: int) -> float:
    """24 of 25, and in the same proportion for more processes."""
    return WINS_MIN / 25.0 * n * m


def _growth_flattens(before: Arm, after: Arm, warmup_rounds: int) -> bool:
    """Say whether what the new build takes more, round by round, is a warm-up that flattens."""
    gap = [new - old for old, new in zip(median_series(before), median_series(after))]
    return flattens(settled(gap, warmup_rounds))


def _judge_growth(
    slopes: tuple[list[float], list[float]],
    levels: tuple[list[float], list[float]],
    limits: MemoryLimits,
    sizes: tuple[int, int],
) -> Verdict | None:
    old, new = median(slopes[0]), median(slopes[1])
    limit = max(limits.growth_bytes, limits.growth_percent / 100.0 * median(levels[0]))
    u = wins(*slopes)
    if u < _needed_wins(*sizes) or new - old <= limit:
        return None
    moved = shift(*slopes)
    return unplaced(
        Outcome.GROWING,
        before=old,
        after=new,
        unit="bytes/round",
        figure=new - old,
        threshold=Threshold(limit, "bytes/round", limits.origin),
        interval=(moved.low, moved.high),
        p_value=mann_whitney(*slopes).p_greater,
        samples=sizes,
        reason=f"slopes won {u:g} of {sizes[0] * sizes[1]} pairs ({_needed_wins(*sizes):g} needed), "
        f"what they gained does not flatten; "
        f"level {median(levels[0]) / MIB:.2f} → {median(levels[1]) / MIB:.2f} MiB",
    )


def _judge_level(levels: tuple[list[float], list[float]], limits: MemoryLimits, sizes: tuple[int, int]) -> Verdict:
    old, new = median(levels[0]), median(levels[1])
    limit = max(limits.level_bytes, limits.level_percent / 100.0 * old)
    u = wins(*levels)
    clear = u >= _needed_wins(*sizes)
    higher = clear and new - old > limit
    allowed = "; higher, within what the threshold allows" if clear and not higher else ""
    moved = shift(*levels)
    return unplaced(
        Outcome.HIGHER_PLATEAU if higher else Outcome.PLATEAU,
        before=old,
        after=new,
        unit="bytes",
        figure=new - old,
        threshold=Threshold(limit, "bytes", limits.origin),
        interval=(moved.low, moved.high),
        p_value=mann_whitney(*levels).p_greater,
        samples=sizes,
        reason=f"levels won {u:g} of {sizes[0] * sizes[1]} pairs ({_needed_wins(*sizes):g} needed){allowed}",
    )


def can_still_regress(before: Arm, after: Arm, warmup_rounds: int, planned: int = ARM_PROCESSES) -> bool:
    """Say whether more processes, up to `planned` an arm, could still convict by slope or by level.

    A conviction leaves at most one pair of 25 in the wrong order, so once more than that are wrong in
    both figures the verdict is `plateau` whatever comes. Stopping there changes no error rate.
    """
    spare = planned * planned - _needed_wins(planned, planned)
    if min(len(before), len(after)) == 0:
        return True
    for figure in (lambda series: slope_of(series, warmup_rounds), level_of):
        old, new = [figure(series) for series in before], [figure(series) for series in after]
        if len(old) * len(new) - wins(old, new) <= spare:
            return True
    return False


def acquitted(before: Arm, after: Arm, warmup_rounds: int, limits: MemoryLimits = MemoryLimits()) -> Verdict:
    """Return the `plateau` verdict of arms that `can_still_regress` has ruled out, with the figures so far."""
    if can_still_regress(before, after, warmup_rounds):
        raise ValueError("these arms could still regress: run the remaining processes")
    levels = [level_of(series) for series in before], [level_of(series) for series in after]
    verdict = _judge_level(levels, limits, (len(before), len(after)))
    return unplaced(
        Outcome.PLATEAU,
        before=verdict.before,
        after=verdict.after,
        unit="bytes",
        figure=verdict.figure,
        threshold=verdict.threshold,
        samples=verdict.samples,
        reason=f"decided after {len(before)} against {len(after)} processes: "
        f"{_needed_wins(ARM_PROCESSES, ARM_PROCESSES):g} of {ARM_PROCESSES ** 2} pairs are out of reach",
    )


def judge_one_arm(series: Sequence[float], warmup_rounds: int | None = None) -> Verdict:
    """Judge one series by itself: does this memory level off?

    F = max(1 MiB, 2 % of the level); the first max(2, n/4) rounds, or the named warm-up, are dropped.
    Growing: adjusted Mann–Kendall z > 2.326, the slope over the rest adds more than F, the second half
    still rises by more than half of that slope, and the rise does not flatten. Plateau: even the upper
    95 % slope adds less than F. Otherwise: cannot tell, more rounds. A warm-up much longer than the one
    dropped still fools it, so it advises and never gates.
    """
    dropped = max(2, len(series) // 4) if warmup_rounds is None else warmup_rounds
    rest = settled(series, dropped)
    if len(rest) < 8:
        return unplaced(
            Outcome.CANNOT_TELL,
            unit="bytes",
            samples=(len(series), 0),
            reason=f"not enough data: {len(series)} rounds with {dropped} of warm-up leave {len(rest)}, 8 are needed",
        )
    level = level_of(series)
    floor = max(MIB, 0.02 * level)
    trend = kendall(rest)
    slope = theil_sen(rest, trend.variance_ratio)
    steps = len(rest) - 1
    second_half = theil_sen(rest[len(rest) // 2 :]).per_round
    threshold = Threshold(floor, "bytes", "rule: max(1 MiB, 2 % of the level) over the judged rounds")
    common = dict(
        before=rest[0],
        after=level,
        unit="bytes",
        figure=slope.per_round * steps,
        threshold=threshold,
        interval=(slope.low * steps, slope.high * steps),
        samples=(len(series), 0),
    )
    rising = trend.z > TREND_Z_MIN and slope.per_round * steps > floor and second_half > slope.per_round / 2.0
    warming = rising and flattens(rest)
    if rising and not warming:
        return unplaced(
            Outcome.GROWING,
            reason=f"trend z = {trend.z:.2f} ({TREND_Z_MIN} needed), "
            f"second half rises {second_half:,.0f} bytes a round",
            **common,
        )
    if slope.high * steps < floor:
        return unplaced(
            Outcome.PLATEAU, reason=f"even the upper 95 % slope adds {slope.high * steps:,.0f} bytes", **common
        )
    why = "it still rises but flattens, as a warm-up does" if warming else f"trend z = {trend.z:.2f}"
    return unplaced(Outcome.CANNOT_TELL, reason=f"{why}; more rounds are needed", **common)
