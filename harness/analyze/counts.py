"""Judges counts and times: exactly where they are exact, by noise threshold and rank test where not.

Called by gate, compare and bisect with bare numbers. Pure; docs/measuring.md has the formulas' sources
and measured error rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analyze.ranktest import mann_whitney, shift, smallest_p
from harness.analyze.robust import median, quartiles, sigma_of_steps, successive_differences
from harness.analyze.verdict import Outcome, Threshold, Verdict, unplaced

SAMPLES_MIN = 5
"""5 against 5 is the smallest design whose exact rank test can reach P_MAX; 4 against 4 ends at 0.029."""

P_MAX = 2.0 / 252.0
"""Two-sided p of complete separation 5 against 5 (0.0079): more samples may overlap, five may not."""

FLOOR_PERCENT = 0.05
"""Below one part in two thousand no change is called a regression, however quiet the workload."""

SIGMAS = 4.24
"""3 * sqrt(2): three standard deviations of the difference of two measurements, each with sigma."""


@dataclass(frozen=True)
class Noise:
    """The relative threshold T of one noisy series, in percent, and each term it is the maximum of."""

    floor_percent: float
    sigma_percent: float
    jumps_percent: float
    step_count: int
    """Successive differences behind the terms; 0 when there was no history at all."""

    @property
    def threshold(self) -> Threshold:
        """T with the term that decided it as its origin."""
        terms = {
            "floor": self.floor_percent,
            f"{SIGMAS} sigma of successive differences, {self.step_count} of them": self.sigma_percent,
            f"Q3 + 3 IQR of |successive differences|, {self.step_count} of them": self.jumps_percent,
        }
        origin = max(terms, key=lambda name: terms[name])
        return Threshold(terms[origin], "%", origin, is_noise=origin != "floor")


def noise_of(*histories: Sequence[float], floor_percent: float = FLOOR_PERCENT) -> Noise:
    """Return the noise threshold of a workload; each history measured one build again and again, oldest first.

    T = max(floor, 4.24 sigma / mean, Q3 + 3 IQR of |successive differences| / mean), over the relative
    differences of all histories together. Differences are taken within a history only: from one build to
    another is a change, not noise.
    """
    steps: list[float] = []
    for history in histories:
        mean = sum(history) / len(history) if history else 0.0
        if mean != 0:
            steps += [step / abs(mean) for step in successive_differences(history)]
    if not steps:
        return Noise(floor_percent, 0.0, 0.0, 0)
    low, high = quartiles([abs(step) for step in steps])
    return Noise(
        floor_percent=floor_percent,
        sigma_percent=100.0 * SIGMAS * sigma_of_steps(steps),
        jumps_percent=100.0 * (high + 3.0 * (high - low)),
        step_count=len(steps),
    )


def judge_exact(before: Sequence[float], after: Sequence[float], limit: Threshold, unit: str) -> Verdict:
    """Judge counts that repeat: any difference is real, beyond `limit` (in %) it is a regression.

    The repeats of an arm must agree within a tenth of the limit; where they do not, the count is not
    exact and the verdict is `cannot tell`: the workload belongs under the rule for noisy counts.
    """
    if not before or not after:
        return unplaced(
            Outcome.CANNOT_TELL,
            unit=unit,
            reason="not enough data: one arm has no count",
            samples=(len(before), len(after)),
        )
    old, new = median(before), median(after)
    sizes = (len(before), len(after))
    if old == 0:
        outcome = Outcome.UNCHANGED if new == 0 else Outcome.CANNOT_TELL
        return unplaced(
            outcome,
            before=old,
            after=new,
            unit=unit,
            samples=sizes,
            reason="" if new == 0 else "the count before is zero, so a change has no percentage",
        )
    for arm in (before, after):
        spread = 100.0 * (max(arm) - min(arm)) / abs(old)
        if spread > limit.value / 10.0:
            return unplaced(
                Outcome.CANNOT_TELL,
                before=old,
                after=new,
                unit=unit,
                samples=sizes,
                threshold=limit,
                figure=100.0 * (new - old) / old,
                reason=f"the repeats of one arm differ by {spread:.4f} %: this count is not exact, judge it as noisy",
            )
    delta = 100.0 * (new - old) / old
    return unplaced(
        _direction(delta, limit.value),
        before=old,
        after=new,
        unit=unit,
        figure=delta,
        threshold=limit,
        samples=sizes,
        reason=f"{new - old:+,.0f} {unit}" if new != old else "",
    )


def _direction(delta_percent: float, limit_percent: float) -> Outcome:
    if delta_percent > limit_percent:
        return Outcome.REGRESSED
    if delta_percent < -limit_percent:
        return Outcome.IMPROVED
    return Outcome.UNCHANGED


def judge_noisy(
    before: Sequence[float], after: Sequence[float], noise: Noise, unit: str, limit: Threshold | None = None
) -> Verdict:
    """Judge noisy figures of interleaved runs: moved means beyond T and separated by the rank test.

    `limit` is a reviewed threshold from the thresholds file; the larger of it and T holds. Smaller is
    better for every metric of this suite.
    """
    sizes = (len(before), len(after))
    threshold = noise.threshold
    if limit is not None and limit.value > threshold.value:
        threshold = limit
    if min(sizes) < SAMPLES_MIN:
        least = f"; {sizes[0]} against {sizes[1]} cannot go below p = {smallest_p(*sizes):.3f}" if min(sizes) else ""
        return unplaced(
            Outcome.CANNOT_TELL,
            unit=unit,
            samples=sizes,
            threshold=threshold,
            before=median(before) if before else None,
            after=median(after) if after else None,
            reason=f"not enough data: {SAMPLES_MIN} runs an arm are needed{least}",
        )
    old, new = median(before), median(after)
    if old == 0:
        return unplaced(
            Outcome.CANNOT_TELL if new else Outcome.UNCHANGED,
            before=old,
            after=new,
            unit=unit,
            samples=sizes,
            reason="the median before is zero, so a change has no percentage",
        )
    test = mann_whitney(before, after)
    moved = shift(before, after)
    delta = 100.0 * (new - old) / abs(old)
    separated = test.p_two_sided <= P_MAX + 1e-9
    outcome = _direction(delta, threshold.value) if separated else Outcome.UNCHANGED
    reason = f"rank test p = {test.p_two_sided:.4f}" + ("" if separated else f" (needs {P_MAX:.4f})")
    return unplaced(
        outcome,
        before=old,
        after=new,
        unit=unit,
        figure=delta,
        threshold=threshold,
        interval=(100.0 * moved.low / abs(old), 100.0 * moved.high / abs(old)),
        p_value=test.p_two_sided,
        samples=sizes,
        reason=reason,
    )


def can_still_move(before: Sequence[float], after: Sequence[float], planned: int = SAMPLES_MIN) -> bool:
    """Say whether more runs, up to `planned` an arm, could still make these arms differ significantly, either way.

    With five planned only complete separation counts as moved, so arms that overlap once never get there. Stopping
    then gives the very verdict that all runs would have given: error rates stay as they are.
    """
    if planned != SAMPLES_MIN:
        raise ValueError("stopping early is derived for five runs an arm")
    return max(before) < min(after) or max(after) < min(before)
